package Fanout;

# Calls a fanout gateway from Perl 5.14 or newer.
#
# One file, core modules only: copy it into the sandbox.
#
#     use lib '.';
#     use Fanout;
#
#     my $answer  = llm_query('What is 2 + 2?');
#     my @answers = llm_query_batch( [ map { "Summarise: $_" } @pages ], 'some-model', max_tokens => 200 );
#     llm_stream( \@prompts, sub { print "$_[0]{index}: $_[0]{result}\n" } );
#     with_run {    # Calls in this block can spend 0.05 USD at most.
#         @answers = llm_query_batch( [ map { "Translate: $_" } @pages ] );
#     } usd => 0.05;
#     FINAL( tool_call( 'search', query => 'fanout' ) );
#
# Environment variables:
#     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL.
#                       https needs IO::Socket::SSL.
#     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
#     FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
#
# The model may be left out. Options are sent as the request fields of their names. `idempotency_key` is sent as a
# header instead: a restarted program that repeats the call under the same key gets the recorded answer at no cost. If
# the connection is lost, the request is repeated under the same key and is paid once. All other retries happen in the
# gateway. Strings are characters, not bytes: `use utf8; use open qw(:std :utf8)`.

use strict;
use warnings;
use Exporter 'import';
use HTTP::Tiny;
use JSON::PP    ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  llm_query llm_message llm_query_batch llm_query_batched llm_batch llm_stream llm_dag llm_vote
  with_run llm_budget llm_usage llm_log tool_call FINAL
);

# The waits before a request whose connection was lost is repeated.
my @RETRY_WAITS_S = ( 0.25, 0.5, 1, 2 );

# The default is longer than the gateway's own limit, so that its error message arrives.
my $TIMEOUT_S = 660;

# The gateway recognises these requests by their idempotency key.
my $REPEATABLE = qr{\A/(?:query|batch|dag|runs|runs/[^/]+/close)\z};

my @BUDGET_FIELDS = qw(usd calls prompt_tokens completion_tokens);

# Canonical: a restarted program sends the same bytes under its key.
my $JSON = JSON::PP->new->utf8->canonical;

# The token of the child run in whose block the program is.
our $child_token;

# Names this life of the program, so that a run that records can replay the one before.
my $EPOCH = _fresh_key();

# Returns the answer to one prompt: a string, or an array of chat messages. With `schema => {…}` the answer is the JSON
# value that fits it, in batches too.
sub llm_query {
    my ( $prompt, @rest ) = @_;
    my $field  = ref $prompt ? 'messages' : 'prompt';
    my $value  = ref $prompt ? $prompt    : "$prompt";
    my $answer = _call( '/query', { $field => $value, _options(@rest) }, 'text' );
    return exists $answer->{json} ? $answer->{json} : $answer->{text};
}

# Returns the whole message of an answer: a hash with `content`, `tool_calls`, … With `tools` of a chat completion it
# may ask for them: sent back as one of the messages, with their results, it goes on. Tools of the run go by their
# names: the gateway calls them itself, and the message is the last of at most `max_turns` answers.
sub llm_message {
    my ( $prompt, @rest ) = @_;
    my $field = ref $prompt ? 'messages' : 'prompt';
    my $value = ref $prompt ? $prompt    : "$prompt";
    return _call( '/query', _asking( { $field => $value, _options(@rest) } ), 'message' )->{message};
}

# Returns the answers to many prompts, in the order of the prompts, by one request. The result of a failed prompt is the
# string "[error] message"; the other results are not affected. With `tools` of a chat completion, or
# `include => ['message']`, the answers are whole messages. Dies only if the whole request fails.
sub llm_query_batch {
    my ( $prompts, @rest ) = @_;
    return if !@$prompts;
    my $fields = _batch( $prompts, @rest );
    $fields = _asking($fields) if _defines_tools($fields);
    my $name    = ( grep { $_ eq 'message' } @{ $fields->{include} || [] } ) ? 'message' : 'json';
    my $answer  = _call( '/batch', $fields, 'results' );
    my $results = $answer->{results};
    if ( @$results != @$prompts ) {
        my $message = sprintf 'sent %d prompts, got %d results', scalar @$prompts, scalar @$results;
        _fail( $message, 'bad_answer', 200 );
    }
    my $slots = $answer->{items};
    return map { exists $slots->[$_]{$name} ? $slots->[$_]{$name} : $results->[$_] } 0 .. $#$results;
}
*llm_query_batched = \&llm_query_batch;
*llm_batch         = \&llm_query_batch;

# Calls a function with each result of a batch as its slot ends: a hash with `index`, `result` and `error` (undef if the
# slot succeeded). A model is given before the function or after it.
sub llm_stream {
    my ( $prompts, @rest ) = @_;
    my $on_slot = ref $rest[0] ? shift @rest : splice @rest, 1, 1;
    _stream( _batch( $prompts, @rest ), $on_slot ) if @$prompts;
    return;
}

# Returns the answer of a graph, an array of tasks whose prompts refer to each other:
# `{ id => 'b', prompt => '{{a.output}} …' }`. The outputs of its last tasks are in `outputs`, by id.
sub llm_dag {
    my ( $tasks, %options ) = @_;
    return _call( '/dag', { tasks => $tasks, %options }, 'tasks' );
}

# Asks a prompt so many times. Returns the vote: `decided`, `winner`, `agreement`, … `aggregate` changes its rule.
sub llm_vote {
    my ( $prompt, $count, @rest ) = @_;
    my $fields = { aggregate => { strategy => 'vote' }, %{ _batch( [ ($prompt) x ( $count // 3 ) ], @rest ) } };
    return _call( '/batch', $fields, 'aggregation' )->{aggregation};
}

# Opens a child run for a block: calls in the block spend the child's budget.
#
#     my @answers = with_run { llm_query_batch( \@prompts ) } usd => 0.05, calls => 20, name => 'translate';
#
# `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the budget of the run around
# the block; a limit that is left out becomes an equal split of what remains there. Other arguments are the fields of
# POST /runs: `name`, `max_parallel`, `models`, `default_model`, …
#
# The block receives the child run's document, a hash with its `id` and its `token`; what it returns is returned. When
# it ends, also by `die`, the child run is closed and what it has not spent returns. Blocks nest. A thread or a process
# that starts in the block sends the child's token too.
sub with_run (&;@) {
    my ( $block, %settings ) = @_;
    my $child = Fanout::ChildRun->open(%settings);
    my @results;
    {
        local $child_token = $child->{run}{token};
        if   (wantarray) { @results    = $block->( $child->{run} ) }
        else             { $results[0] = $block->( $child->{run} ) }
    }
    $child->close;
    return wantarray ? @results : $results[0];
}

# Returns what is left of the run's budget, child runs included: `usd`, `calls`, `prompt_tokens` and
# `completion_tokens`, each with `limit`, `spent`, `reserved` and `remaining`.
sub llm_budget {
    return _call( '/budget', undef, 'usd' );
}

# Returns what the run itself has used since the last reset, child runs not included: `llm_calls`, `input_tokens`,
# `output_tokens`, `cost` in USD, `calls_by_model`. What child runs spent is in llm_budget(). llm_usage(1) also resets.
sub llm_usage {
    my ($reset) = @_;
    return _call( $reset ? '/usage?reset=1' : '/usage', undef, 'llm_calls' );
}

# Appends an event to the run's log.
sub llm_log {
    my ( $type, %fields ) = @_;
    return _call( '/log', { %fields, event_type => $type }, 'appended' );
}

# Records the program's result, any JSON value, as `final_result` in the run's log.
sub FINAL {
    my ($result) = @_;
    my $text = ref $result ? JSON::PP->new->canonical->encode($result) : $result;
    return llm_log( 'final_result', output => $text, data => $result );
}

# Returns the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects.
sub tool_call {
    my ( $name, %input ) = @_;
    return _call( '/tool_call', { tool_name => $name, input => \%input }, 'result' )->{result};
}

sub _batch {
    my ( $prompts, @rest ) = @_;
    return { prompts => [ map { "$_" } @$prompts ], _options(@rest) };
}

# The options, in which a model without a name may come first.
sub _options {
    my @rest  = @_;
    my $model = @rest % 2 ? shift @rest : undef;
    return ( @rest, defined $model ? ( model => $model ) : () );
}

# Whether the tools are definitions for the model; tools of the run go by their names.
sub _defines_tools {
    my ($fields) = @_;
    return grep { ref } @{ $fields->{tools} || [] };
}

# The fields of a call that asks for the whole message.
sub _asking {
    my %fields = %{ $_[0] };
    $fields{include} = [ 'message', grep { $_ ne 'message' } @{ $fields{include} || [] } ];
    $fields{params}  = { %{ $fields{params} || {} }, tools => delete $fields{tools} } if _defines_tools( \%fields );
    return \%fields;
}

# Returns the answer, an object with the field $expects.
sub _call {
    my ( $path, $body, $expects ) = @_;
    my $reply  = _send( _prepare( $path, $body, 'application/json' ) );
    my $answer = _parse( $reply->{content}, $reply->{status} );
    _fail( "the answer has no field $expects", 'bad_answer', 200 ) if !exists $answer->{$expects};
    return $answer;
}

# Gives each slot once, although a repeated request streams all slots again.
sub _stream {
    my ( $body, $on_slot ) = @_;
    my %seen;
    my $on_line = sub {
        my $event = _parse( $_[0], 200 );
        my $type  = $event->{type} // '';
        $on_slot->($event) if $type eq 'slot' && !$seen{ $event->{index} }++;
        return $type eq 'group_completed';
    };
    my $reply = _send( _prepare( '/batch', $body, 'application/x-ndjson' ), $on_line );
    _parse( $reply->{content}, $reply->{status} ) if $reply->{status} != 200;
    return;
}

# Returns the gateway's reply. Repeats a request that was lost, if it has a key.
sub _send {
    my ( $request, $on_line ) = @_;
    my @waits_s = defined $request->{key} ? @RETRY_WAITS_S : ();
    while (1) {
        my ( $reply, $lost ) = _exchange( $request, $on_line );
        return $reply if !defined $lost;
        _fail( "no answer: $lost", 'timeout',     undef, 1 ) if $lost =~ /timed out/i;
        _fail( "no answer: $lost", 'unreachable', undef, 1 ) if !@waits_s;
        sleep shift @waits_s;
    }
    return;
}

# Sends the request once. Returns the reply, and what happened if it is lost.
sub _exchange {
    my ( $request, $on_line ) = @_;
    my $text      = '';
    my $completed = !$on_line;
    my $failure;
    my $on_data = sub {
        $text .= $_[0];
        while ( $text =~ s/\A\s*(\S.*)\n// ) {

            # HTTP::Tiny would take this for a failure of the connection.
            next if eval { $completed = $on_line->($1); 1 };
            $failure = [$@];
            die "stopped\n";
        }
    };
    my %options = %{ $request->{options} };
    $options{data_callback} = $on_data if $on_line;
    my $reply = $request->{http}->request( $request->{method}, $request->{url}, \%options );
    die $failure->[0] if $failure;

    # A reply without a protocol was made by HTTP::Tiny: it describes a failure.
    return ( $reply, $reply->{content} ) if !exists $reply->{protocol};
    my $is_whole = $completed || $reply->{status} != 200;
    return $is_whole ? $reply : ( $reply, 'the stream was cut' );
}

sub _prepare {
    my ( $path, $body, $accept ) = @_;
    my $token = $child_token // _setting('TOKEN');
    _fail( 'FANOUT_TOKEN is not set: it is the run token', 'no_token' ) if !defined $token;
    my $base = _setting('URL') // 'http://127.0.0.1:8787';

    # With the /v1 that OpenAI's clients want, it is the same gateway.
    $base =~ s{/\z}{};
    $base =~ s{/v1\z}{};
    my ($host) = $base =~ m{\Ahttps?://(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:/[!-~]*)?\z}i
      or _fail( "FANOUT_URL is not an http(s) address: $base", 'bad_url' );
    my %headers = ( authorization => "Bearer $token", 'content-type' => 'application/json', accept => $accept );
    $headers{'x-fanout-epoch'} = $EPOCH;
    my %options;
    my $key;

    if ($body) {
        my %fields = %$body;
        if ( $path =~ $REPEATABLE ) {
            $key = delete $fields{idempotency_key} // _fresh_key();
            $headers{'idempotency-key'} = $key;
        }
        $options{content} = $JSON->encode( \%fields );
    }

    # A proxy does not reach this machine's own addresses.
    my @no_proxy = lc $host =~ /\A(?:localhost|127\..*|\[::1\])\z/ ? ( proxy => undef, http_proxy => undef ) : ();

    # The token is sent to no other host.
    my %client = ( timeout => _setting('TIMEOUT_S') // $TIMEOUT_S, max_redirect => 0, verify_SSL => 1, @no_proxy );
    return {
        http    => HTTP::Tiny->new(%client),
        method  => $body ? 'POST' : 'GET',
        url     => $base . $path,
        options => { %options, headers => \%headers },
        key     => $key,
    };
}

sub _fresh_key {
    my $bytes = '';
    if ( open my $random, '<:raw', '/dev/urandom' ) {
        read $random, $bytes, 16;
        close $random;
    }
    return sprintf '%s-%d-%.6f', unpack( 'H*', $bytes ), $$, time;
}

sub _setting {
    my ($name) = @_;
    for my $variable ( "FANOUT_$name", "GATEWAY_$name" ) {
        my $value = $ENV{$variable} // '';
        $value =~ s/\A\s+|\s+\z//g;
        return $value if length $value;
    }
    return;
}

# Returns the JSON object in an answer. Dies with the failure that it reports.
sub _parse {
    my ( $text, $status ) = @_;
    my $answer    = eval { $JSON->decode($text) };
    my $is_object = ref $answer eq 'HASH';
    my $error     = $is_object ? $answer->{error} : undef;

    # A slot of a stream reports its own error as data.
    my $is_good = !defined $error || ( $answer->{type} // '' ) eq 'slot';
    return $answer if $is_object && $status < 300 && $is_good;

    my $http_status = $status < 400 ? undef : $status;
    if ( ref $error eq 'HASH' ) {
        my ( $status, $retryable ) = ( $http_status // $error->{status}, $error->{retryable} );
        _fail( $error->{message}, $error->{code}, $status, $retryable, $error );
    }
    if ( defined $error ) {
        _fail( $error, 'tool_error', $http_status, $status == 408 || $status == 503 );
    }
    return _fail( "HTTP $status, unexpected answer: " . substr( $text, 0, 200 ), 'bad_answer', $http_status );
}

sub _fail {
    my ( $message, $code, $status, $retryable, $used ) = @_;
    my %failure = ( message => $message, code => $code, status => $status, retryable => $retryable );
    @failure{ 'attempts', 'charged_usd' } = @$used{ 'attempts', 'charged_usd' } if $used;
    die bless \%failure, 'Fanout::Error';
}

# A failed call.
package Fanout::Error;

use overload '""' => sub { return $_[0]{message} }, fallback => 1;

sub message { return $_[0]{message} }

# The gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`, `tool_error`.
sub code { return $_[0]{code} }

# The HTTP status, or undef if there was no answer.
sub status { return $_[0]{status} }

# Whether the same call may succeed later.
sub retryable { return $_[0]{retryable} }

# What a call has used up that was made, or undef.
sub attempts    { return $_[0]{attempts} }
sub charged_usd { return $_[0]{charged_usd} }

# A child run that is open. It is also closed when its block is left by `die`, `last` or `exit`: then the guard goes out
# of scope, and why the block was left matters more than a close that fails.
package Fanout::ChildRun;

sub open {
    my ( $class, %settings ) = @_;
    my %limits = map { exists $settings{$_} ? ( $_ => delete $settings{$_} ) : () } @BUDGET_FIELDS;
    $settings{budget} = { %{ $settings{budget} // {} }, %limits } if %limits;
    my $run = Fanout::_call( '/runs', \%settings, 'token' );
    return bless { run => $run, outer_token => $child_token, pid => $$ }, $class;
}

sub close {
    my ($self) = @_;
    return if $self->{is_closed}++;
    local $child_token = $self->{outer_token};
    Fanout::_call( "/runs/$self->{run}{id}/close", {}, 'status' );
    return;
}

# A thread that starts in the block has the child's token, but not the guard.
sub CLONE_SKIP { return 1 }

sub DESTROY {
    my ($self) = @_;

    # A process that was forked in the block has a copy of the guard, and leaves the run open.
    return if $self->{pid} != $$;
    local $@;
    eval { $self->close };
    return;
}

1;
