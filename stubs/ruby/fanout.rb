# Ask a fanout gateway from Ruby 2.7 or newer. One file, standard library only: copy it into the sandbox.
#
#     require_relative "fanout"; include Fanout
#     answer = llm_query("What is 2 + 2?")                       # a string, or an array of chat messages
#     answers = llm_query_batch(pages.map { |page| "Summarise: #{page}" }, max_tokens: 200)
#     llm_stream(prompts) { |slot| puts slot["index"], slot["result"] } # as they end; without a block: an Enumerator
#     llm_budget["usd"]["remaining"] + llm_usage["cost"]         # llm_usage(reset: true) also begins to count anew
#     llm_log("execution_result", output: "42")                  # an event of the run's log
#     FINAL(tool_call("search", query: "fanout"))                # the run's result; a tool that it was opened with
#
# FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
# GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest silence borne. A keyword argument is sent as the
# request field of that name; but `idempotency_key:` names the call, so that a restarted program finds the answers that
# it has paid for. A call that spends is sent again under its key when the connection breaks; nothing else is repeated.
%w[json net/http openssl securerandom].each { |library| require library }

module Fanout
  # A failed call. `code`: one of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer; `status`: the
  # HTTP status, nil where there was no answer; `retryable`: the same call may succeed later.
  class FanoutError < StandardError
    attr_reader :code, :status, :retryable
    def initialize(message, code, status = nil, retryable = false)
      super(message)
      @code, @status, @retryable = code, status, retryable
    end
  end

  def llm_query(prompt, model = nil, **options)
    Gateway.ask("/query", { (prompt.is_a?(Array) ? :messages : :prompt) => prompt, model: model, **options }, "text")
  end

  # The answers in the order of `prompts`. A failed one is the string "[error] message" in its place and touches no
  # other. Raises only when the whole request fails.
  def llm_query_batch(prompts, model = nil, **options)
    results = prompts.empty? ? [] : Gateway.ask("/batch", { prompts: prompts, model: model, **options }, "results")
    return results if results.size == prompts.size
    raise FanoutError.new("#{prompts.size} prompts got #{results.size} results", "bad_answer", 200)
  end
  %i[llm_query_batched llm_batch].each { |name| alias_method name, :llm_query_batch }

  # Yields a hash for each slot as it ends: its "index", its "result", its "error" or nil.
  def llm_stream(prompts, model = nil, **options)
    return enum_for(:llm_stream, prompts, model, **options) unless block_given?
    body = { prompts: prompts, model: model, **options }
    slots = Enumerator.new { |out| Gateway.stream(body) { |slot| out << slot } unless prompts.empty? }
    loop { yield slots.next } # Out here, what the block raises cannot pass for a lost connection.
  end

  def llm_budget
    Gateway.ask("/budget")
  end

  def llm_usage(reset: false)
    Gateway.ask(reset ? "/usage?reset=1" : "/usage")
  end

  def llm_log(event_type, fields = {})
    Gateway.ask("/log", { event_type: event_type, **fields })
  end

  def tool_call(name, input = {})
    Gateway.ask("/tool_call", { tool_name: name, input: input }, "result")
  end

  def FINAL(result)
    llm_log("final_result", output: result.is_a?(String) ? result : JSON.generate(result), data: result)
  end

  module Gateway # :nodoc:
    ADDRESS = %r{\Ahttps?://[\w.:\[\]-]+(/[!-~]*)?\z}.freeze
    WAITS_S = [0.25, 0.5, 1, 2].freeze # Before each further try of a call that the connection lost.
    LOST = [Timeout::Error, SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError, Net::HTTPBadResponse].freeze

    def self.ask(path, body = nil, wanted = nil)
      understood(*trying(path, body) { |*call| exchange(*call) }, wanted)
    end

    def self.stream(body, given = {})
      trying("/batch", body, "application/x-ndjson") do |*call|
        exchange(*call) do |line, status|
          next if status == 200 && line.strip.empty?
          event = understood(line, status)
          given[event["index"]] ||= yield(event) || true if event["type"] == "slot"
          given[:all] = true if event["type"] == "group_completed"
        end
        raise EOFError, "the stream was cut" unless given[:all]
      end
    end

    # Yields a request, and again if it is lost and has a key that keeps it from being made twice.
    def self.trying(path, body, accept = "application/json")
      key = body.delete(:idempotency_key) || SecureRandom.uuid if %w[/query /batch].include?(path)
      [*(WAITS_S if key), nil].each do |wait|
        return yield(path, body, { "accept" => accept, "idempotency-key" => key }.compact)
      rescue *LOST => e
        code = e.is_a?(Timeout::Error) ? "timeout" : "unreachable"
        raise FanoutError.new("no answer: #{e.message}", code, nil, true) if code == "timeout" || wait.nil?
        sleep(wait)
      end
    end

    # The body and the status of one answer. A block is given the lines of it as they come.
    def self.exchange(path, body, headers, text = String.new, size = 0)
      http, request = prepared(path, body, headers)
      response = http.request(request) do |coming|
        coming.read_body do |piece|
          size += piece.bytesize
          text << piece
          text.slice!(/.*\n/m)&.each_line { |line| yield line, 200 } if block_given? && coming.code == "200"
        end
        raise EOFError, "the answer was cut" if size < coming.content_length.to_i # Net::HTTP does not mind.
      end
      yield text, response.code.to_i if block_given?
      [text, response.code.to_i]
    end

    def self.prepared(path, body, headers)
      base = setting("URL", "http://127.0.0.1:8787").chomp("/")
      token = setting("TOKEN") or raise FanoutError.new("FANOUT_TOKEN, the run token, is not set", "no_token")
      base.match?(ADDRESS) or raise FanoutError.new("FANOUT_URL is no http(s) address: #{base}", "bad_url")
      headers = { **headers, "authorization" => "Bearer #{token}", "content-type" => "application/json",
                  "accept-encoding" => "identity" }
      request = Net::HTTP.const_get(body ? :Post : :Get).new(URI(base + path), headers)
      request.body = body && JSON.generate(body.compact)
      http = Net::HTTP.new(request.uri.hostname, request.uri.port)
      http.use_ssl = request.uri.scheme == "https"
      http.max_retries = 0 # Net::HTTP would repeat by itself, also what has no key.
      http.open_timeout = http.read_timeout = http.write_timeout = setting("TIMEOUT_S", 660).to_f
      [http, request]
    end

    def self.setting(name, default = nil)
      ENV.values_at("FANOUT_#{name}", "GATEWAY_#{name}").map(&:to_s).map(&:strip).reject(&:empty?).first || default
    end

    # The JSON object that was sent. Raises the failure that it tells of, and where it is not what was asked for.
    def self.understood(text, status, wanted = nil)
      answer = JSON.parse(text.force_encoding("UTF-8")) rescue nil
      error = answer["error"] if answer.is_a?(Hash)
      good = answer.is_a?(Hash) && status < 300 && (error.nil? || answer["type"] == "slot")
      return wanted ? answer[wanted] : answer if good && (wanted.nil? || answer.key?(wanted))
      facts = error if error.is_a?(Hash)
      facts ||= { "message" => error, "code" => "tool_error", "retryable" => [408, 503].include?(status) } if error
      facts ||= { "message" => "HTTP #{status}, not what was asked for: #{text[0, 200]}", "code" => "bad_answer" }
      status = facts["status"] if status < 400
      raise FanoutError.new(facts["message"], facts["code"], status, facts["retryable"] == true)
    end
  end
end
