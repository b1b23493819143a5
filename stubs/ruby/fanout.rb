# frozen_string_literal: true

# Calls a fanout gateway from Ruby 2.7 or newer.
#
# One file, standard library only: copy it into the sandbox.
#
#     require_relative "fanout"
#     include Fanout
#
#     answer = llm_query("What is 2 + 2?")
#     answers = llm_query_batch(pages.map { |page| "Summarise: #{page}" }, max_tokens: 200)
#     llm_stream(prompts, "some-model") { |slot| puts slot["index"], slot["result"] }
#     with_run(usd: 0.05) do # Calls in this block can spend 0.05 USD at most.
#       answers = llm_query_batch(pages.map { |page| "Translate: #{page}" })
#     end
#     FINAL(tool_call("search", query: "fanout"))
#
# Environment variables:
#     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
#     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
#     FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
#
# A keyword argument is sent as the request field of that name. `idempotency_key:` is sent as
# a header instead: a restarted program that repeats the call under the same key gets the
# recorded answer at no cost. If the connection is lost, the request is repeated under the
# same key and is paid once. All other retries happen in the gateway.

require "json"
require "net/http"
require "openssl"
require "securerandom"

module Fanout
  # A failed call.
  class FanoutError < StandardError
    # The gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`, `tool_error`.
    attr_reader :code
    # The HTTP status, or nil if there was no answer.
    attr_reader :status
    # Whether the same call may succeed later.
    attr_reader :retryable
    # What a call has used up that was made, or nil.
    attr_reader :attempts, :charged_usd

    def initialize(message, code, status = nil, retryable = false, attempts: nil, charged_usd: nil)
      super(message)
      @code = code
      @status = status
      @retryable = retryable
      @attempts = attempts
      @charged_usd = charged_usd
    end
  end

  # Returns the answer to one prompt: a string, or an array of chat messages. With `schema: {…}` the answer is the JSON
  # value that fits it, in batches too.
  def llm_query(prompt, model = nil, **options)
    field = prompt.is_a?(Array) ? :messages : :prompt
    answer = Gateway.call("/query", { field => prompt, model: model, **options }, expects: "text")
    answer.fetch("json", answer["text"])
  end

  # Returns the whole message of an answer: "content", "tool_calls", … With `tools:` of a chat completion it may ask for
  # them: sent back as one of the messages, with their results, it goes on. Tools of the run go by their names: the
  # gateway calls them itself, and the message is the last of at most `max_turns:` answers.
  def llm_message(prompt, model = nil, **options)
    field = prompt.is_a?(Array) ? :messages : :prompt
    body = { field => prompt, model: model, **Gateway.asking(options) }
    Gateway.call("/query", body, expects: "message")["message"]
  end

  # Returns the answers to many prompts, in the order of `prompts`, by one request. The result of a failed prompt is the
  # string "[error] message"; the other results are not affected. With `tools:` of a chat completion, or `include:
  # ["message"]`, the answers are whole messages. Raises FanoutError only if the whole request fails.
  def llm_query_batch(prompts, model = nil, **options)
    return [] if prompts.empty?

    options = Gateway.asking(options) if Gateway.defines_tools?(options)
    name = options.fetch(:include, []).include?("message") ? "message" : "json"
    body = { prompts: prompts, model: model, **options }
    results, slots = Gateway.call("/batch", body, expects: "results").values_at("results", "items")
    return results.zip(slots).map { |result, slot| slot.fetch(name, result) } if results.size == prompts.size

    raise FanoutError.new("sent #{prompts.size} prompts, got #{results.size} results", "bad_answer", 200)
  end
  alias llm_query_batched llm_query_batch
  alias llm_batch llm_query_batch

  # Yields the results of a batch as its slots end: a hash with "index", "result" and "error" (nil if the slot
  # succeeded). Returns an Enumerator if no block is given.
  def llm_stream(prompts, model = nil, **options)
    unless block_given?
      # An Enumerator may run in a fiber of its own, which is outside of all `with_run` blocks.
      token = Gateway.child_token
      return Enumerator.new do |slots|
        Gateway.use_token(token) { llm_stream(prompts, model, **options) { |slot| slots << slot } }
      end
    end
    return if prompts.empty?

    # What the block raises is thrown past the retries: it is no failure of the connection.
    failure = catch(:fanout_block_failed) do
      Gateway.stream({ prompts: prompts, model: model, **options }) do |slot|
        yield slot
      rescue StandardError => e
        throw :fanout_block_failed, e
      end
      nil
    end
    raise failure if failure
  end

  # Returns the answer of a graph, an array of tasks whose prompts refer to each other:
  # `{ id: "b", prompt: "{{a.output}} …" }`. The outputs of its last tasks are in "outputs", by id.
  def llm_dag(tasks, **options)
    Gateway.call("/dag", { tasks: tasks, **options }, expects: "tasks")
  end

  # Asks a prompt `count` times. Returns the vote: "decided", "winner", "agreement", … `aggregate` changes its rule.
  def llm_vote(prompt, count = 3, model = nil, **options)
    body = { prompts: [prompt] * count, model: model, aggregate: { strategy: "vote" }, **options }
    Gateway.call("/batch", body, expects: "aggregation")["aggregation"]
  end

  # Opens a child run for a block: calls in the block spend the child's budget.
  #
  #     with_run(usd: 0.05, calls: 20, name: "translate") { |run| llm_query_batch(prompts) }
  #
  # `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits, reserved in the budget of the run around
  # the block; a limit that is left out becomes an equal split of what remains there. Other arguments are the fields of
  # POST /runs: `name`, `max_parallel`, `models`, `default_model`, …
  #
  # Yields the child run's document with its "id" and its "token", and returns what the block returns. When the block
  # ends, also by an exception, the child run is closed and what it has not spent returns. Blocks nest. Each thread and
  # each fiber has its own: a new thread starts outside of all blocks.
  def with_run(**settings)
    run = Gateway.open_run(settings)
    begin
      result = Gateway.use_token(run["token"]) { yield run }
    rescue Exception # rubocop:disable Lint/RescueException
      begin
        Gateway.close_run(run)
      rescue FanoutError
        # The exception of the block matters more.
      end
      run = nil
      raise
    ensure
      Gateway.close_run(run) if run
    end
    result
  end

  # Returns what is left of the run's budget, child runs included: "usd", "calls", "prompt_tokens" and
  # "completion_tokens", each with "limit", "spent", "reserved" and "remaining".
  def llm_budget
    Gateway.call("/budget", expects: "usd")
  end

  # Returns what the run itself has used since the last reset, child runs not included: "llm_calls", "input_tokens",
  # "output_tokens", "cost" in USD, "calls_by_model". What child runs spent is in `llm_budget`.
  def llm_usage(reset: false)
    Gateway.call(reset ? "/usage?reset=1" : "/usage", expects: "llm_calls")
  end

  # Appends an event to the run's log.
  def llm_log(event_type, fields = {})
    Gateway.call("/log", { event_type: event_type, **fields }, expects: "appended")
  end

  # Returns the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects.
  def tool_call(name, input = {})
    Gateway.call("/tool_call", { tool_name: name, input: input }, expects: "result")["result"]
  end

  # Records the program's result, any JSON value, as `final_result` in the run's log.
  def FINAL(result) # rubocop:disable Naming/MethodName
    llm_log("final_result", output: result.is_a?(String) ? result : JSON.generate(result), data: result)
  end

  # The requests behind the functions above.
  module Gateway # :nodoc:
    # The waits before a request whose connection was lost is repeated.
    RETRY_WAITS_S = [0.25, 0.5, 1, 2].freeze

    # The default is longer than the gateway's own limit, so that its error message arrives.
    TIMEOUT_S = 660

    # What Net::HTTP raises if there is no whole answer.
    LOST = [Timeout::Error, SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError, Net::HTTPBadResponse].freeze

    # The gateway recognises these requests by their idempotency key.
    REPEATABLE = %r{\A/(query|batch|dag|runs|runs/[^/]+/close)\z}.freeze

    ADDRESS = %r{\Ahttps?://[\w.:\[\]-]+(/[!-~]*)?\z}.freeze
    BUDGET_FIELDS = %i[usd calls prompt_tokens completion_tokens].freeze

    # Names this life of the program, so that a run that records can replay the one before.
    EPOCH = SecureRandom.uuid

    module_function

    # Returns the answer, an object with the field `expects`.
    def call(path, body = nil, expects:)
      text, status = send_request(path, body, "application/json")
      answer = parse(text, status)
      raise failure(answer, text, status) unless answer.key?(expects)

      answer
    end

    # Yields each slot once, although a repeated request streams all slots again.
    def stream(body)
      seen = {}
      send_request("/batch", body, "application/x-ndjson") do |line|
        event = parse(line, 200)
        case event["type"]
        when "slot"
          yield event unless seen[event["index"]]
          seen[event["index"]] = true
        when "group_completed"
          seen[:completed] = true
        end
        seen[:completed]
      end
    end

    # Whether the tools are definitions for the model; tools of the run go by their names.
    def defines_tools?(options)
      options.fetch(:tools, []).any? { |tool| !tool.is_a?(String) }
    end

    # The options of a call that asks for the whole message.
    def asking(options)
      wanted = { **options, include: ["message"] | options.fetch(:include, []) }
      return wanted unless defines_tools?(options)

      wanted.reject { |name, _| name == :tools }.merge(params: { **options.fetch(:params, {}), tools: options[:tools] })
    end

    def open_run(settings)
      limits = settings.slice(*BUDGET_FIELDS)
      fields = settings.reject { |name, _| limits.key?(name) }
      fields[:budget] = fields.fetch(:budget, {}).merge(limits) unless limits.empty?
      call("/runs", fields, expects: "token")
    end

    def close_run(run)
      call("/runs/#{run["id"]}/close", {}, expects: "status")
    end

    # The token of the child run in whose block this fiber is, or nil.
    def child_token
      Thread.current[:fanout_child_token]
    end

    def use_token(token)
      outer = child_token
      Thread.current[:fanout_child_token] = token
      yield
    ensure
      Thread.current[:fanout_child_token] = outer
    end

    # Returns the text and the status of the answer. Yields the lines of a stream; the block returns whether it is
    # complete.
    def send_request(path, body, accept, &on_line)
      key = nil
      if path.match?(REPEATABLE)
        body = body.dup
        key = body.delete(:idempotency_key) || SecureRandom.uuid
      end
      request = prepare(path, body, { "accept" => accept, "idempotency-key" => key }.compact)
      waits_s = key ? RETRY_WAITS_S.dup : []
      begin
        exchange(request, &on_line)
      rescue *LOST => e
        raise FanoutError.new("no answer: #{e.message}", "timeout", nil, true) if e.is_a?(Timeout::Error)
        raise FanoutError.new("no answer: #{e.message}", "unreachable", nil, true) if waits_s.empty?

        sleep(waits_s.shift)
        retry
      end
    end

    def prepare(path, body, headers)
      # With the /v1 that OpenAI's clients want, it is the same gateway.
      base = setting("URL", "http://127.0.0.1:8787").chomp("/").delete_suffix("/v1")
      raise FanoutError.new("FANOUT_URL is not an http(s) address: #{base}", "bad_url") unless base.match?(ADDRESS)

      token = child_token || setting("TOKEN", "")
      raise FanoutError.new("FANOUT_TOKEN is not set: it is the run token", "no_token") if token.empty?

      request_class = body ? Net::HTTP::Post : Net::HTTP::Get
      request = request_class.new(URI(base + path), headers)
      request["authorization"] = "Bearer #{token}"
      request["content-type"] = "application/json"
      request["accept-encoding"] = "identity"
      request["x-fanout-epoch"] = EPOCH
      request.body = JSON.generate(body.compact) if body
      request
    end

    # Sends the request once.
    def exchange(request)
      text = String.new
      size = 0
      completed = false
      response = connection(request.uri).request(request) do |coming|
        coming.read_body do |piece|
          size += piece.bytesize
          text << piece
          next unless block_given? && coming.code == "200"

          text.slice!(/.*\n/m)&.each_line { |line| completed = yield(line) unless line.strip.empty? }
        end
        # Net::HTTP ignores that a body is shorter than its content-length.
        raise EOFError, "the answer was cut" if size < coming.content_length.to_i
      end
      status = response.code.to_i
      return [text, status] unless block_given?

      raise failure(parse(text, status), text, status) unless status == 200
      raise EOFError, "the stream was cut" unless completed
    end

    def connection(uri)
      http = Net::HTTP.new(uri.hostname, uri.port)
      http.use_ssl = uri.scheme == "https"
      http.max_retries = 0 # Net::HTTP would repeat requests by itself, also those without a key.
      timeout_s = setting("TIMEOUT_S", TIMEOUT_S).to_f
      http.open_timeout = timeout_s
      http.read_timeout = timeout_s
      http.write_timeout = timeout_s
      http
    end

    def setting(name, default)
      values = ENV.values_at("FANOUT_#{name}", "GATEWAY_#{name}").map { |value| value.to_s.strip }
      values.find { |value| !value.empty? } || default
    end

    # Returns the JSON object in an answer. Raises the failure that it reports.
    def parse(text, status)
      begin
        answer = JSON.parse(text.force_encoding("UTF-8"))
      rescue JSON::ParserError
        answer = nil
      end
      # A slot of a stream reports its own error as data.
      good = answer.is_a?(Hash) && status < 300 && (answer["error"].nil? || answer["type"] == "slot")
      good ? answer : raise(failure(answer, text, status))
    end

    def failure(answer, text, status)
      error = answer["error"] if answer.is_a?(Hash)
      http_status = status if status >= 400
      case error
      when Hash
        used = { attempts: error["attempts"], charged_usd: error["charged_usd"] }
        retryable = error["retryable"] == true
        FanoutError.new(error["message"], error["code"], http_status || error["status"], retryable, **used)
      when String
        FanoutError.new(error, "tool_error", http_status, [408, 503].include?(status))
      else
        FanoutError.new("HTTP #{status}, unexpected answer: #{text[0, 200]}", "bad_answer", http_status)
      end
    end
  end
  private_constant :Gateway
end
