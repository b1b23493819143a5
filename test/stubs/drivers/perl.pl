# Drives stubs/perl/Fanout.pm for the conformance test.
use strict;
use warnings;
use Encode qw(decode_utf8);
use Fanout;

binmode STDOUT, ':encoding(UTF-8)';
$| = 1;

sub record { print shift, "\x1e"; return }

my ($command, @args) = map { decode_utf8($_) } @ARGV;
my %commands = (
    query         => sub { record(llm_query(@args)) },
    batch         => sub { record($_) for llm_query_batch(\@args) },
    'batch-model' => sub { my $model = shift @args; record($_) for llm_query_batch(\@args, $model) },
    stream        => sub { llm_stream(\@args, sub { record("$_[0]{index}\x1f$_[0]{result}") }) },
    budget        => sub { record(llm_budget()->{usd}{remaining}) },
    usage         => sub { record(llm_usage()->{llm_calls}) },
    final         => sub { FINAL(@args); record('ok') },
    log           => sub { llm_log(@args); record('ok') },
    tool          => sub { record(tool_call(@args)) },
);
if (!eval { $commands{$command}->(); 1 }) {
    my $error = $@;
    die $error if !ref $error;
    my ($code, $status, $retryable) = ($error->code, $error->status // '', $error->retryable ? 'true' : 'false');
    record("\x15$code\x1f$status\x1f$retryable");
}
