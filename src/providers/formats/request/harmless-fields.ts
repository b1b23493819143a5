/**
 * Request fields that spend nothing beyond what bytes and cap bound: sampling, form of the answer, tracing. Grouped by
 * source; a name of several sources is in the first. Names are separated by white space.
 */

/** OpenAI: chat completions, completions and responses (the types of its Node client 7.55). */
export const OPENAI = `
  temperature top_p frequency_penalty presence_penalty seed stop logprobs top_logprobs user store
  parallel_tool_calls reasoning_effort verbosity safety_identifier prompt_cache_key
  prompt_cache_retention echo
`;

/** OpenAI: fields of the Responses API only. */
export const OPENAI_RESPONSES = "include truncation max_tool_calls";

/** Anthropic: messages (the types of its TypeScript client, beta included). */
export const ANTHROPIC = "top_k stop_sequences";

/** OpenRouter: parameters and request tracing. */
export const OPENROUTER = `
  min_p top_a repetition_penalty include_reasoning transforms session_id
`;

/** Mistral: chat and fill-in-the-middle. `safe_prompt` and `prompt_mode` add a prompt, so they have their own rules. */
export const MISTRAL = "random_seed min_tokens";

/** Groq: chat completions. */
export const GROQ = "reasoning_format disable_tool_validation citation_options";

/** Together: chat and text completions. */
export const TOGETHER = "context_length_exceeded_behavior compliance";

/** Fireworks: chat and text completions. */
export const FIREWORKS = `
  prompt_truncate_len perf_metrics_in_response prompt_cache_isolation_key prompt_cache_max_len raw_output
  reasoning_history typical_p mirostat_lr mirostat_target ignore_eos echo_last return_token_ids sampling_mask
`;

/** Qwen on Alibaba's Model Studio, and similar servers. */
export const QWEN = "incremental_output result_format preserve_thinking do_sample request_id";

/** vLLM: sampling and extra parameters of its OpenAI-compatible server. */
export const VLLM = `
  length_penalty stop_token_ids include_stop_str_in_output skip_special_tokens spaces_between_special_tokens
  truncate_prompt_tokens truncation_side prompt_logprobs allowed_token_ids bad_words add_generation_prompt
  continue_final_message add_special_tokens guided_regex guided_choice guided_grammar
  guided_decoding_backend guided_whitespace_pattern priority return_tokens_as_token_ids cache_salt
  logprob_token_ids thinking_token_budget early_stopping
`;

/** SGLang: sampling and extra parameters of its OpenAI-compatible server. */
export const SGLANG = `
  regex ebnf separate_reasoning stream_reasoning no_stop_trim stop_regex rid return_hidden_states
  return_cached_tokens_details lora_path
`;

/** llama.cpp: sampling options of its OpenAI-compatible routes. */
export const LLAMA_CPP = `
  mirostat mirostat_tau mirostat_eta tfs_z dynatemp_range dynatemp_exponent xtc_probability xtc_threshold
  dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers repeat_penalty repeat_last_n
  penalize_nl grammar grammar_lazy cache_prompt id_slot n_keep n_probs min_keep samplers
  t_max_predict_ms return_tokens timings_per_token post_sampling_probs response_fields parse_tool_calls
  reasoning_in_content thinking_forced_open top_n_sigma adaptive_target adaptive_decay
  return_progress
`;

/** Ollama: fields that its compatible routes add to OpenAI's. */
export const OLLAMA = "keep_alive think";

/** Coding agents: what Codex says of its session, which OpenAI's server keeps beside the request. */
export const AGENTS_LABELS = "client_metadata";

/**
 * Fields that hold any JSON: OpenAI's labels and biases, OpenRouter's tracing, the schemas and grammars of OpenRouter, vLLM,
 * SGLang, llama.cpp and Ollama, and vLLM's arguments of its extensions. The model reads the schemas at most.
 */
export const OPAQUE_FIELDS = `
  metadata logit_bias trace debug structured_outputs guided_json structural_tag json_schema format grammar_triggers
  vllm_xargs repetition_detection
`;

/** Embeddings: OpenAI, vLLM, Mistral, Cohere, Jina, Voyage, NVIDIA. */
export const EMBEDDINGS = `
  dimensions encoding_format user truncate truncation truncate_prompt_tokens input_type output_dimension output_dtype
  embedding_type embedding_types task late_chunking normalized normalize priority add_special_tokens
  request_id return_tokens
`;

/** Options of Ollama's own API, which some servers accept in `options` on compatible routes; without its cap. */
export const OLLAMA_OPTIONS = `
  num_ctx num_keep num_batch num_gpu main_gpu use_mmap num_thread low_vram numa seed top_k top_p min_p typical_p
  repeat_last_n temperature repeat_penalty presence_penalty frequency_penalty penalize_newline mirostat mirostat_tau
  mirostat_eta tfs_z stop
`;

/** Switches of the chat templates of open models. A template ignores unknown ones. */
export const TEMPLATE_SWITCHES = `
  enable_thinking thinking thinking_budget reasoning_effort preserve_thinking clear_thinking add_generation_prompt
  add_vision_id builtin_tools date_string xml_tools python_tools tools_in_user_message model_identity
  reasoning low_effort medium_effort truncate_history_thinking force_nonempty_content continue_final_message
`;
