# Drives stubs/perl/Fanout.pm for the conformance test.
use strict;
use warnings;
use Encode qw(decode_utf8);
use Fanout;

binmode STDOUT, ':encoding(UTF-8)';
$| = 1;

sub record {
    print shift, "\x1e";
    return;
}

sub record_all {
    record($_) for @_;
    return;
}

sub stream {
    my @prompts = @_;
    llm_stream( \@prompts, sub { record("$_[0]{index}\x1f$_[0]{result}") } );
    return;
}

my %schema = ( type => 'object', properties => { n => { type => 'integer' } }, required => ['n'] );

sub batch_json {
    record( ref $_ ? $_->{n} : $_ ) for llm_query_batch( \@_, schema => \%schema );
    return;
}

my @tools = ( { type => 'function', function => { name => 'double', parameters => \%schema } } );
my %must  = ( tools => \@tools, params => { tool_choice => 'required' } );

sub message {
    my ( $model, $prompt ) = @_;
    my $asked  = llm_message( $prompt, $model, %must );
    my $call   = $asked->{tool_calls}[0];
    my $result = { role => 'tool', tool_call_id => $call->{id}, content => '8' };
    my @asks   = map { { role => 'user', content => $_ } } $prompt, 'done';
    my $answer = llm_message( [ $asks[0], $asked, $result, $asks[1] ], $model );
    record("$call->{function}{name}\x1f$answer->{content}");
    return;
}

sub messages {
    my ( $model, @prompts ) = @_;
    record( $_->{tool_calls}[0]{function}{name} ) for llm_query_batch( \@prompts, $model, %must );
    return;
}

sub agent {
    my ( $model, $tool, $prompt ) = @_;
    record( llm_message( $prompt, $model, tools => [$tool], max_turns => 4 )->{content} );
    return;
}

sub dag {
    my ($prompt) = @_;
    my @tasks = ( { id => 'a', prompt => $prompt }, { id => 'b', prompt => '{{a.output}} and two' } );
    record( llm_dag( \@tasks )->{outputs}{b} );
    return;
}

sub vote {
    my ( $count, $prompt ) = @_;
    my $vote = llm_vote( $prompt, $count );
    record("$vote->{winner}\x1f$vote->{votes}");
    return;
}

sub child {
    my ( $calls, @prompts ) = @_;
    with_run { record( llm_query($_) ) for @prompts } calls => 0 + $calls;
    return;
}

sub nested {
    my ($prompt) = @_;
    with_run {
        record( llm_query($prompt) );
        with_run { record( llm_query($prompt) ) } calls => 1;
        record( llm_query($prompt) );
    }
    calls => 4;
    record( llm_query($prompt) );
    return;
}

# Each child run in a process of its own.
sub children {
    my @outputs;
    for my $prompt (@_) {
        my $pid = open my $output, '-|';
        if ( !$pid ) {
            my $answer = with_run { llm_query($prompt) } calls => 1;
            record($answer);
            exit;
        }
        push @outputs, $output;
    }
    local $/ = "\x1e";
    for my $output (@outputs) {
        my $answer = decode_utf8( scalar <$output> );
        chomp $answer;
        record($answer);
    }
    return;
}

my ( $command, @args ) = map { decode_utf8($_) } @ARGV;
my %commands = (
    query         => sub { record( llm_query(@args) ) },
    batch         => sub { record_all( llm_query_batch( \@args ) ) },
    'batch-model' => sub { record_all( llm_query_batch( [ @args[ 1 .. $#args ] ], $args[0] ) ) },
    stream        => sub { stream(@args) },
    json          => sub { record( llm_query( @args, schema => \%schema )->{n} ) },
    'batch-json'  => sub { batch_json(@args) },
    message       => sub { message(@args) },
    messages      => sub { messages(@args) },
    agent         => sub { agent(@args) },
    dag           => sub { dag(@args) },
    vote          => sub { vote(@args) },
    budget        => sub { record( llm_budget()->{usd}{remaining} ) },
    usage         => sub { record( llm_usage()->{llm_calls} ) },
    final         => sub { FINAL(@args);   record('ok') },
    log           => sub { llm_log(@args); record('ok') },
    tool          => sub { record( tool_call(@args) ) },
    child         => sub { child(@args) },
    nested        => sub { nested(@args) },
    children      => sub { children(@args) },
);
if ( !eval { $commands{$command}->(); 1 } ) {
    my $error = $@;
    die $error if !ref $error;
    my $retryable = $error->retryable ? 'true' : 'false';
    my @used      = ( $error->attempts // '', $error->charged_usd // '' );
    record( join "\x1f", "\x15" . $error->code, $error->status // '', $retryable, @used );
}
