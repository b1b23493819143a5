package Fanout;

# Ask a fanout gateway from Perl 5.14 or newer. One file, core modules only: copy it into the sandbox.
#
#     use lib '.'; use Fanout;
#     my $answer  = llm_query('What is 2 + 2?');                           # a string, or an array of chat messages
#     my @answers = llm_query_batch([map { "Summarise: $_" } @pages], 'some-model', max_tokens => 200);
#     llm_stream(\@prompts, sub { print "$_[0]{index}: $_[0]{result}\n" });                  # the slots as they end
#     print llm_budget()->{usd}{remaining}, llm_usage()->{cost};           # llm_usage(1) also begins to count anew
#     llm_log('execution_result', output => '42');                         # an event of the run's log
#     FINAL(tool_call('search', query => 'fanout'));                       # the run's result; a tool that it has
#
# FANOUT_URL names the gateway (default http://127.0.0.1:8787; https needs IO::Socket::SSL), FANOUT_TOKEN carries the
# run token; GATEWAY_URL and GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest silence borne. The model
# may be left out. An option is sent as the request field of that name; but `idempotency_key` names the call, so that a
# restarted program finds the answers that it has paid for. A call that spends is sent again under its key when the
# connection breaks; no other POST is repeated. Strings are characters, not bytes: `use utf8; use open qw(:std :utf8)`.
use strict; use warnings;
use Exporter 'import';
use HTTP::Tiny; use JSON::PP ();
use Time::HiRes qw(sleep time);

our @EXPORT = (qw(FINAL tool_call), map {"llm_$_"} qw(query query_batch query_batched batch stream budget usage log));
my $JSON = JSON::PP->new->utf8->canonical;    # Canonical: a restarted program sends the same bytes under its key.

sub llm_query {
    my ($prompt, @rest) = @_;
    my %asked = ref $prompt ? (messages => $prompt) : (prompt => "$prompt");
    return _ask('/query', { %asked, _options(@rest) }, 'text');
}

# The answers in the order of the prompts, as a list. A failed one is the string "[error] message" in its place and
# touches no other. Dies only when the whole request fails.
sub llm_query_batch {
    my ($prompts, @rest) = @_;
    return unless @$prompts;
    my $results = _ask('/batch', { prompts => [map {"$_"} @$prompts], _options(@rest) }, 'results');
    _fail(@$prompts . ' prompts got ' . @$results . ' results', 'bad_answer', 200) if @$results != @$prompts;
    return @$results;
}
*llm_query_batched = *llm_batch = \&llm_query_batch;

# Calls $on_slot with a hash for each slot as it ends: its index, its result, its error or undef.
sub llm_stream {
    my ($prompts, $on_slot, @rest) = @_;
    my %given;
    my $on_event = sub {
        my ($event) = @_;
        $on_slot->($event) if ($event->{type} // '') eq 'slot' && !$given{ $event->{index} }++;
    };
    _call('/batch', { prompts => [map {"$_"} @$prompts], _options(@rest) }, $on_event) if @$prompts;
    return;
}

sub llm_budget { return _call('/budget') }
sub llm_usage { my ($reset) = @_; return _call($reset ? '/usage?reset=1' : '/usage') }
sub llm_log { my ($type, %fields) = @_; return _call('/log', { event_type => $type, %fields }) }
sub tool_call { my ($name, %input) = @_; return _ask('/tool_call', { tool_name => $name, input => \%input }, 'result') }

sub FINAL {
    my ($result) = @_;
    my $text = ref $result ? JSON::PP->new->canonical->encode($result) : $result;
    return llm_log('final_result', output => $text, data => $result);
}

sub _options {
    my $model = @_ % 2 ? shift : undef;
    return (@_, defined $model ? (model => $model) : ());
}

sub _ask {
    my ($path, $body, $wanted) = @_;
    my $answer = _call($path, $body);
    return exists $answer->{$wanted} ? $answer->{$wanted} : _fail("the answer has no $wanted", 'bad_answer', 200);
}

# The answer; each line of a stream is given to $on_event as it comes. Repeats what is lost, where a key permits it.
sub _call {
    my ($path, $body, $on_event) = @_;
    my $key = $path =~ m{^/(?:query|batch)$} ? delete $body->{idempotency_key} // _fresh_key() : undef;
    my ($http, $url, %request) = _prepared($path, $body, $key, $on_event ? 'application/x-ndjson' : 'application/json');
    for my $wait_s (defined $key ? (0.25, 0.5, 1, 2) : (), undef) {
        my ($rest, $last, $died) = ('', {});
        my $follow = sub {
            $rest .= $_[0];
            while ($rest =~ s/\A\s*(\S.*)\n//) {
                # What dies here would be taken for a failure of the connection.
                eval { $on_event->($last = _understood($1, 200)); 1 } or do { $died = $@; die "stopped\n" };
            }
        };
        my $reply = $http->request($body ? 'POST' : 'GET', $url, { %request, data_callback => $on_event && $follow });
        if (exists $reply->{protocol}) {    # Else HTTP::Tiny made it up, and tells of a failure.
            return _understood($reply->{content}, $reply->{status}) if !$on_event || $reply->{status} != 200;
            eval { $follow->("\n") };    # The last line may lack its end.
            return if ($last->{type} // '') eq 'group_completed';
        }
        die $died if $died;
        my $lost = exists $reply->{protocol} ? 'the stream was cut' : $reply->{content};
        my $code = $lost =~ /timed out/i ? 'timeout' : 'unreachable';
        _fail("no answer: $lost", $code, undef, 1) if $code eq 'timeout' || !defined $wait_s;
        sleep $wait_s;
    }
}

sub _prepared {
    my ($path, $body, $key, $accept) = @_;
    my $token = _setting('TOKEN') // _fail('FANOUT_TOKEN, the run token, is not set', 'no_token');
    my $url = _setting('URL') // 'http://127.0.0.1:8787';
    my $host = $url =~ m{\Ahttps?://(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:/[!-~]*)?\z}i && lc $1;
    _fail("FANOUT_URL is no http(s) address: $url", 'bad_url') if !$host;
    my %headers = (authorization => "Bearer $token", 'content-type' => 'application/json', accept => $accept);
    $headers{'idempotency-key'} = $key if defined $key;
    my @direct = map { ($_ => undef) } $host =~ /\A(?:localhost|127\..*|\[::1\])\z/ ? qw(proxy http_proxy) : ();
    my $http = HTTP::Tiny->new(timeout => _setting('TIMEOUT_S') // 660, max_redirect => 0, verify_SSL => 1, @direct);
    return ($http, $url =~ s{/\z}{}r . $path, headers => \%headers, $body ? (content => $JSON->encode($body)) : ());
}

sub _fresh_key {
    my $bytes = '';
    if (open my $random, '<:raw', '/dev/urandom') { read $random, $bytes, 16 }
    return sprintf '%s-%d-%.6f', unpack('H*', $bytes), $$, time;
}

sub _setting {
    my ($value) = grep { length } map { ($_ // '') =~ s/\A\s+|\s+\z//gr } @ENV{"FANOUT_$_[0]", "GATEWAY_$_[0]"};
    return $value;
}

sub _understood {
    my ($text, $status) = @_;
    my $answer = eval { $JSON->decode($text) };
    my $error = ref $answer eq 'HASH' ? $answer->{error} : undef;
    return $answer if ref $answer eq 'HASH' && $status < 300 && (!$error || ($answer->{type} // '') eq 'slot');
    my $http_status = $status < 400 ? undef : $status;
    _fail($error, 'tool_error', $http_status, $status =~ /^(?:408|503)$/) if $error && !ref $error;
    _fail("HTTP $status: " . substr($text, 0, 200), 'bad_answer', $http_status) if ref $error ne 'HASH';
    _fail($error->{message}, $error->{code}, $http_status // $error->{status}, $error->{retryable});
}

sub _fail {
    my %failure;
    @failure{qw(message code status retryable)} = @_;
    die bless \%failure, 'Fanout::Error';
}
# A failed call. code: one of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer; status: the HTTP
# status, undef where there was no answer; retryable: the same call may succeed later.
package Fanout::Error;
use overload '""' => sub { return $_[0]{message} }, fallback => 1;
for my $field (qw(message code status retryable)) { no strict 'refs'; *$field = sub { return $_[0]{$field} } }
1;
