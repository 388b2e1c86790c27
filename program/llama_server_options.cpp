#include "program/llama_server_options.h"

#include <algorithm>
#include <array>
#include <ranges>

namespace tt {

namespace {

using enum LlamaServerOption::Group;

// What to do instead of several options.
constexpr const char* kTaskset = "Use taskset: the threads inherit its processors";
constexpr const char* kNice = "Use nice or chrt: the threads inherit the priority";
constexpr const char* kDefaultPoll = "Threads wait as in llama-server (50)";
constexpr const char* kRopeOfModel = "RoPE is as the model says";
constexpr const char* kDefaultSplit = "Layers are split as llama-server does by default";
constexpr const char* kNoFit =
    "Nothing is adjusted to the memory: choose -c and -ngl, or use --memory-budget";
constexpr const char* kNoAdapters =
    "Adapters are not supported. Merge it into the model with llama-export-lora of llama.cpp";
constexpr const char* kNoControlVectors = "Control vectors are not supported";
constexpr const char* kNoDownload = "No model is downloaded. Give the path of a GGUF file with -m";
constexpr const char* kLogLines = "Lines of the log have their time and level";
constexpr const char* kNoSpeculation = "Speculative decoding is not supported";
constexpr const char* kGrammar =
    "Convert it to a grammar with json_schema_to_grammar.py of llama.cpp, and use --grammar";
constexpr const char* kWholeContext =
    "A model runs one request at a time, which has the whole context";
constexpr const char* kNoCheckpoints =
    "No checkpoints are kept: a prefix is reused if the cells of the window remain";
constexpr const char* kPreviousPrefix = "Only the prefix of the previous request is reused";
constexpr const char* kOneRequest = "A model runs one request at a time, and others wait";
constexpr const char* kNoMedia = "Images and sound are not supported";
constexpr const char* kFileName = "The id of a model is the name of its file";
constexpr const char* kCorsOrigins = "Which origins may send requests is set with --cors-origins";
constexpr const char* kNoPageSettings = "The page has no such setting";
constexpr const char* kNoTools = "Tools are not supported";
constexpr const char* kProxyForTls = "Use a reverse proxy for TLS (docs/behind-a-proxy.md)";
constexpr const char* kPlainAnswer = "The answer is the text that the model generates";

// An option that a program here has, too. `reason`: why its default differs.
constexpr LlamaServerOption has(LlamaServerOption::Group group, std::string_view names,
                                std::string_view value = "", std::string_view reason = "") {
  return {.names = names, .value = value, .group = group, .reason = reason};
}
// One that no program here has.
constexpr LlamaServerOption lacks(LlamaServerOption::Group group, std::string_view names,
                                  std::string_view value, std::string_view instead) {
  return {.names = names, .value = value, .group = group, .instead = instead};
}

// In the order of its --help.
constexpr std::array kOptions = {
    has(Other, "-h, --help, --usage"),
    has(Other, "--version"),
    lacks(Other, "-cl, --cache-list", "", "No model is downloaded"),
    lacks(Other, "--completion-bash", "", "Source cli/completion/tt"),
    has(Context, "-t, --threads", "<num_cpus>",
        "The smallest of the processors of the machine, of the affinity (taskset, cpuset) and of "
        "the CPU limit (cgroup). llama-server takes the physical cores, also if the process may "
        "use fewer"),
    has(Context, "-tb, --threads-batch", "same as --threads",
        "The same as --threads, as in llama-server"),
    lacks(Context, "-C, --cpu-mask", "", kTaskset),
    lacks(Context, "-Cr, --cpu-range", "", kTaskset),
    lacks(Context, "--cpu-strict", "0", kTaskset),
    lacks(Context, "--prio", "0", kNice),
    lacks(Context, "--poll", "50", kDefaultPoll),
    lacks(Context, "-Cb, --cpu-mask-batch", "same as --cpu-mask", kTaskset),
    lacks(Context, "-Crb, --cpu-range-batch", "", kTaskset),
    lacks(Context, "--cpu-strict-batch", "same as --cpu-strict", kTaskset),
    lacks(Context, "--prio-batch", "0", kNice),
    lacks(Context, "--poll-batch", "same as --poll", kDefaultPoll),
    has(Context, "-c, --ctx-size", "0",
        "At most the training context. The KV cache is allocated and cleared at load; at the "
        "training context of large models it needs many GiB, which then are missing for weights, "
        "page cache and memory budget. -c 0 is the default of llama-server (which reduces it to "
        "what fits, --fit). Where a model has other RoPE factors for long contexts (longrope), -c "
        "0 also selects these"),
    has(Context, "-n, --predict, --n-predict", "-1",
        "Each recorded token needs space; llama-server generates until the model ends or the "
        "context is full"),
    has(Context, "-b, --batch-size", "2048"),
    has(Context, "-ub, --ubatch-size", "512"),
    lacks(Context, "--keep", "0",
          "There is no context shift: a generation ends when the context is full"),
    has(Context, "--swa-full", "false"),
    has(Context, "-fa, --flash-attn", "auto"),
    lacks(Context, "--perf, --no-perf", "false", "A session records the time of every op: tt show"),
    lacks(Context, "-e, --escape, --no-escape", "true",
          "Write the characters themselves, in bash: $'line\\n'"),
    lacks(Context, "--rope-scaling", "", kRopeOfModel),
    lacks(Context, "--rope-scale", "", kRopeOfModel),
    lacks(Context, "--rope-freq-base", "loaded from model", kRopeOfModel),
    lacks(Context, "--rope-freq-scale", "", kRopeOfModel),
    lacks(Context, "--yarn-orig-ctx", "0 = model training context size", kRopeOfModel),
    lacks(Context, "--yarn-ext-factor", "-1.00", kRopeOfModel),
    lacks(Context, "--yarn-attn-factor", "-1.00", kRopeOfModel),
    lacks(Context, "--yarn-beta-slow", "-1.00", kRopeOfModel),
    lacks(Context, "--yarn-beta-fast", "-1.00", kRopeOfModel),
    lacks(Context, "-kvo, --kv-offload, -nkvo, --no-kv-offload", "enabled",
          "The KV cache of offloaded layers is on the device, as in llama-server"),
    has(Context, "--repack, -nr, --no-repack", "enabled"),
    lacks(Context, "--no-host", "", "Host buffers are used, as in llama-server"),
    has(Context, "-ctk, --cache-type-k", "f16"),
    has(Context, "-ctv, --cache-type-v", "f16"),
    lacks(Context, "-dt, --defrag-thold", "", "llama.cpp ignores it"),
    has(Context, "--rpc"),
    has(Context, "-lm, --load-mode", "auto"),
    has(Context, "-lzm, --lazy-mode", "auto"),
    lacks(Context, "--numa", "", "Use numactl"),
    lacks(Context, "-dev, --device", "", "Use -ngl 0 for no device"),
    lacks(Context, "--list-devices", "", "tt show --facts lists them as host.devices"),
    has(Context, "-ot, --override-tensor"),
    has(Context, "-cmoe, --cpu-moe"),
    has(Context, "-ncmoe, --n-cpu-moe"),
    has(Context, "--moe-cache-mib", "0"),
    lacks(Context, "-ncffn, --n-cpu-ffn", "", "Use -ot REGEX=CPU"),
    has(Context, "-ngl, --gpu-layers, --n-gpu-layers", "auto",
        "Ops on a device have only exact times, with a synchronisation after each op; -ngl all "
        "offloads all layers"),
    lacks(Context, "-sm, --split-mode", "", kDefaultSplit),
    lacks(Context, "-ts, --tensor-split", "", kDefaultSplit),
    lacks(Context, "-mg, --main-gpu", "0", kDefaultSplit),
    lacks(Context, "-fit, --fit", "on", kNoFit),
    lacks(Context, "-fitt, --fit-target", "1024", kNoFit),
    lacks(Context, "-fitc, --fit-ctx", "4096", kNoFit),
    lacks(Context, "--check-tensors", "false",
          "A model is checked in a child process at its first load"),
    lacks(Context, "--override-kv", "", "Change the file: gguf_set_metadata.py of llama.cpp"),
    lacks(Context, "--op-offload, --no-op-offload", "true",
          "Ops are offloaded as llama-server does by default"),
    lacks(Context, "--lora", "", kNoAdapters),
    lacks(Context, "--lora-scaled", "", kNoAdapters),
    lacks(Context, "--control-vector", "", kNoControlVectors),
    lacks(Context, "--control-vector-scaled", "", kNoControlVectors),
    lacks(Context, "--control-vector-layer-range", "", kNoControlVectors),
    has(Context, "-m, --model"),
    lacks(Context, "-mu, --model-url", "unused", kNoDownload),
    lacks(Context, "-dr, --docker-repo", "unused", kNoDownload),
    lacks(Context, "-hf, -hfr, --hf-repo", "unused", kNoDownload),
    lacks(Context, "-hff, --hf-file", "unused", kNoDownload),
    lacks(Context, "-hft, --hf-token", "value from HF_TOKEN environment variable", kNoDownload),
    lacks(Other, "--log-disable", "", "Use --log-level error"),
    lacks(Other, "--log-file", "", "The log is on stderr: 2> FILE"),
    lacks(Other, "--log-jsonl, --no-log-jsonl", "disabled", "Use --log-json"),
    lacks(Other, "--log-colors", "auto", "The log has no colours"),
    lacks(Other, "-v, --verbose, --log-verbose", "",
          "Use --log-level debug (tt-server) or --verbose (tt)"),
    lacks(Other, "--offline", "", "Nothing is downloaded"),
    lacks(Other, "-lv, --verbosity, --log-verbosity", "3",
          "Use --log-level (tt-server) or --verbose (tt)"),
    lacks(Other, "--log-prefix, --no-log-prefix", "", kLogLines),
    lacks(Other, "--log-timestamps, --no-log-timestamps", "", kLogLines),
    lacks(Other, "--spec-draft-type-k, -ctkd, --cache-type-k-draft", "f16", kNoSpeculation),
    lacks(Other, "--spec-draft-type-v, -ctvd, --cache-type-v-draft", "f16", kNoSpeculation),
    has(Sampling, "--samplers",
        "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"),
    has(Sampling, "-s, --seed", "-1", "Random, as in llama-server; the session records it"),
    has(Sampling, "--sampler-seq, --sampling-seq", "edskypmxt"),
    has(Sampling, "--ignore-eos"),
    has(Sampling, "--temp, --temperature", "0.80"),
    has(Sampling, "--top-k", "40"),
    has(Sampling, "--top-p", "0.95"),
    has(Sampling, "--min-p", "0.05"),
    has(Sampling, "--top-nsigma, --top-n-sigma", "-1.00"),
    has(Sampling, "--xtc-probability", "0.00"),
    has(Sampling, "--xtc-threshold", "0.10"),
    has(Sampling, "--typical, --typical-p", "1.00"),
    has(Sampling, "--repeat-last-n", "64"),
    has(Sampling, "--repeat-penalty", "1.00"),
    has(Sampling, "--presence-penalty", "0.00"),
    has(Sampling, "--frequency-penalty", "0.00"),
    has(Sampling, "--dry-multiplier", "0.00"),
    has(Sampling, "--dry-base", "1.75"),
    has(Sampling, "--dry-allowed-length", "2"),
    has(Sampling, "--dry-penalty-last-n", "64"),
    has(Sampling, "--dry-sequence-breaker"),
    has(Sampling, "--adaptive-target", "-1.00"),
    has(Sampling, "--adaptive-decay", "0.90"),
    has(Sampling, "--dynatemp-range", "0.00"),
    has(Sampling, "--dynatemp-exp", "1.00"),
    has(Sampling, "--mirostat", "0"),
    has(Sampling, "--mirostat-lr", "0.10"),
    has(Sampling, "--mirostat-ent", "5.00"),
    has(Sampling, "-l, --logit-bias"),
    has(Sampling, "--grammar"),
    lacks(Sampling, "--grammar-file", "", "Give the text of the file: --grammar \"$(cat FILE)\""),
    lacks(Sampling, "-j, --json-schema", "", kGrammar),
    lacks(Sampling, "-jf, --json-schema-file", "", kGrammar),
    lacks(Sampling, "-bs, --backend-sampling", "disabled",
          "Tokens are sampled on the CPU, as llama-server does by default"),
    lacks(Other, "--spec-draft-hf, -hfd, -hfrd, --hf-repo-draft", "unused", kNoSpeculation),
    lacks(Other, "--spec-draft-threads, -td, --threads-draft", "same as --threads", kNoSpeculation),
    lacks(Other, "--spec-draft-threads-batch, -tbd, --threads-batch-draft",
          "same as --threads-draft", kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-mask, -Cd, --cpu-mask-draft", "same as --cpu-mask",
          kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-range, -Crd, --cpu-range-draft", "", kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-strict, --cpu-strict-draft", "same as --cpu-strict",
          kNoSpeculation),
    lacks(Other, "--spec-draft-prio, --prio-draft", "0", kNoSpeculation),
    lacks(Other, "--spec-draft-poll, --poll-draft", "same as --poll", kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-mask-batch, -Cbd, --cpu-mask-batch-draft", "same as --cpu-mask",
          kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-strict-batch, --cpu-strict-batch-draft", "--cpu-strict-draft",
          kNoSpeculation),
    lacks(Other, "--spec-draft-prio-batch, --prio-batch-draft", "0", kNoSpeculation),
    lacks(Other, "--spec-draft-poll-batch, --poll-batch-draft", "--poll-draft", kNoSpeculation),
    lacks(Other, "--spec-draft-override-tensor, -otd, --override-tensor-draft", "", kNoSpeculation),
    lacks(Other, "--spec-draft-cpu-moe, -cmoed, --cpu-moe-draft", "", kNoSpeculation),
    lacks(Other, "--spec-draft-n-cpu-moe, --spec-draft-ncmoe, -ncmoed, --n-cpu-moe-draft", "",
          kNoSpeculation),
    lacks(Other, "--spec-draft-n-max", "3", kNoSpeculation),
    lacks(Other, "--spec-draft-n-min", "0", kNoSpeculation),
    lacks(Other, "--spec-draft-n-ubatch", "0 - same as --n-ubatch", kNoSpeculation),
    lacks(Other, "--spec-synth-len", "", kNoSpeculation),
    lacks(Other, "--spec-synth-rates", "", kNoSpeculation),
    lacks(Other, "--spec-draft-p-split, --draft-p-split", "0.10", kNoSpeculation),
    lacks(Other, "--spec-draft-p-min, --draft-p-min", "0.00", kNoSpeculation),
    lacks(Other, "--spec-draft-backend-sampling, --no-spec-draft-backend-sampling", "enabled",
          kNoSpeculation),
    lacks(Other, "--spec-draft-sampling", "greedy", kNoSpeculation),
    lacks(Other, "--spec-draft-device, -devd, --device-draft", "follows --device", kNoSpeculation),
    lacks(Other, "--spec-draft-ngl, -ngld, --gpu-layers-draft, --n-gpu-layers-draft", "auto",
          kNoSpeculation),
    lacks(Other, "--spec-draft-model, -md, --model-draft", "unused", kNoSpeculation),
    lacks(Other, "--spec-type", "none", kNoSpeculation),
    lacks(Other, "--spec-ngram-mod-n-min", "48", kNoSpeculation),
    lacks(Other, "--spec-ngram-mod-n-max", "64", kNoSpeculation),
    lacks(Other, "--spec-ngram-mod-n-match", "24", kNoSpeculation),
    lacks(Other, "--spec-ngram-simple-size-n", "12", kNoSpeculation),
    lacks(Other, "--spec-ngram-simple-size-m", "48", kNoSpeculation),
    lacks(Other, "--spec-ngram-simple-min-hits", "1", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k-size-n", "12", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k-size-m", "48", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k-min-hits", "1", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k4v-size-n", "12", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k4v-size-m", "48", kNoSpeculation),
    lacks(Other, "--spec-ngram-map-k4v-min-hits", "1", kNoSpeculation),
    lacks(Other, "--draft, --draft-n, --draft-max", "", kNoSpeculation),
    lacks(Other, "--draft-min, --draft-n-min", "", kNoSpeculation),
    lacks(Other, "--spec-ngram-size-n", "", kNoSpeculation),
    lacks(Other, "--spec-ngram-size-m", "", kNoSpeculation),
    lacks(Other, "--spec-ngram-min-hits", "", kNoSpeculation),
    lacks(Other, "-lcs, --lookup-cache-static", "", kNoSpeculation),
    lacks(Other, "-lcd, --lookup-cache-dynamic", "", kNoSpeculation),
    lacks(Context, "--kv-unified-per-slot", "unset", kWholeContext),
    lacks(Context, "-ctxcp, --ctx-checkpoints, --swa-checkpoints", "32", kNoCheckpoints),
    lacks(Context, "-cms, --checkpoint-min-step", "8192", kNoCheckpoints),
    lacks(Context, "-cram, --cache-ram", "8192", kPreviousPrefix),
    lacks(Context, "-kvu, --kv-unified, -no-kvu, --no-kv-unified",
          "enabled if number of slots is auto", kWholeContext),
    lacks(Context, "--cache-idle-slots, --no-cache-idle-slots", "enabled", kWholeContext),
    lacks(Context, "--context-shift, --no-context-shift", "disabled",
          "A generation ends when the context is full, as llama-server does by default"),
    lacks(Context, "-r, --reverse-prompt", "", "Use --stop of tt record, or stop of a request"),
    lacks(Other, "-sp, --special", "false", "The session records every token, with its text"),
    lacks(Context, "--warmup, --no-warmup", "enabled",
          "There is no warm-up: the first session shows the first reads. Its first step is slower "
          "than in llama-server"),
    lacks(Context, "--spm-infill", "disabled", "There is no infill"),
    lacks(Context, "--pooling", "", "Embeddings are pooled as the model says"),
    lacks(Context, "-np, --parallel", "-1", kOneRequest),
    lacks(Context, "-cb, --cont-batching, -nocb, --no-cont-batching", "enabled", kOneRequest),
    lacks(Other, "-mm, --mmproj", "", kNoMedia),
    lacks(Other, "-mmu, --mmproj-url", "", kNoMedia),
    lacks(Other, "--mmproj-auto, --no-mmproj, --no-mmproj-auto", "enabled", kNoMedia),
    lacks(Other, "--mmproj-offload, --no-mmproj-offload", "enabled", kNoMedia),
    lacks(Other, "-mmdev, --mmproj-device", "follows --device", kNoMedia),
    lacks(Other, "--image-min-tokens", "read from model", kNoMedia),
    lacks(Other, "--image-max-tokens", "read from model", kNoMedia),
    lacks(Other, "--mtmd-batch-max-tokens", "1024", kNoMedia),
    lacks(Other, "--video-fps", "4.0", kNoMedia),
    lacks(Other, "--video-timestamp-interval", "5000", kNoMedia),
    lacks(Other, "--video-ffmpeg-dir", "search in PATH", kNoMedia),
    lacks(Other, "-a, --alias", "", kFileName),
    lacks(Other, "--tags", "", kFileName),
    lacks(Other, "--embd-normalize", "2", "Embeddings are not normalised"),
    has(Other, "--host", "127.0.0.1"),
    has(Other, "--port", "9931"),
    lacks(Other, "--reuse-port", "disabled", "Choose another --port"),
    has(Other, "--path"),
    has(Other, "--cors-origins", "*"),
    lacks(Other, "--cors-methods", "GET", kCorsOrigins),
    lacks(Other, "--cors-headers", "*", kCorsOrigins),
    lacks(Other, "--cors-credentials, --no-cors-credentials", "enabled", kCorsOrigins),
    lacks(Other, "--api-prefix", "", "Use a reverse proxy (docs/behind-a-proxy.md)"),
    lacks(Other, "--ui-config, --webui-config", "", kNoPageSettings),
    lacks(Other, "--ui-config-file, --webui-config-file", "", kNoPageSettings),
    lacks(Other, "--ui-mcp-proxy, --webui-mcp-proxy, --no-ui-mcp-proxy, --no-webui-mcp-proxy",
          "disabled", kNoTools),
    lacks(Other, "--tools", "no tools", kNoTools),
    lacks(Other, "--tools-runtime", "none", kNoTools),
    lacks(Other, "--mcp-servers-config", "none", kNoTools),
    lacks(Other, "--mcp-servers-json", "none", kNoTools),
    lacks(Other, "-ag, --agent, -no-ag, --no-agent", "disabled", kNoTools),
    lacks(Other, "--ui, --webui, --no-ui, --no-webui", "enabled", "The page is always served"),
    lacks(Other, "--embedding, --embeddings", "disabled",
          "An embedding model returns its embedding"),
    lacks(Other, "--rerank, --reranking", "disabled", "Reranking is not supported"),
    has(Other, "--api-key", "none"),
    has(Other, "--api-key-file", "none"),
    lacks(Other, "--ssl-key-file", "", kProxyForTls),
    lacks(Other, "--ssl-cert-file", "", kProxyForTls),
    lacks(Other, "--chat-template-kwargs", "", "Give chat_template_kwargs in the request"),
    lacks(Other, "-to, --timeout", "3600", "The time limits are fixed (docs/limits.md)"),
    lacks(Other, "--sse-ping-interval", "30", "The interval is fixed"),
    lacks(Other, "--threads-http", "-1", "The number of HTTP threads is fixed"),
    lacks(Context, "--cache-prompt, --no-cache-prompt", "enabled",
          "A common prefix is reused, unless a request has reuse_prefix=false"),
    lacks(Context, "--cache-reuse", "0",
          "Only a common prefix is reused, as llama-server does by default"),
    lacks(Other, "--metrics", "disabled", "/metrics always answers"),
    lacks(Other, "--props", "disabled", "GET /api/v1/models has the properties"),
    lacks(Other, "--slots, --no-slots", "enabled",
          "GET /api/v1/generate lists the running requests"),
    lacks(Other, "--slot-save-path", "disabled", kPreviousPrefix),
    lacks(Other, "--media-path", "disabled", kNoMedia),
    has(Other, "--models-dir", "disabled"),
    lacks(Other, "--models-preset", "disabled", "All models have the options of the server"),
    has(Other, "--models-max", "4"),
    lacks(Other, "--models-autoload, --no-models-autoload", "enabled",
          "A model is loaded on request: POST /api/v1/models/ID/load"),
    lacks(Other, "--jinja, --no-jinja", "enabled",
          "Leave it out: the chat template of the model is always used"),
    lacks(Other, "--reasoning-format", "auto", kPlainAnswer),
    lacks(Other, "-rea, --reasoning", "auto",
          "Give enable_thinking in chat_template_kwargs of the request"),
    lacks(Other, "--reasoning-effort", "default",
          "Give reasoning_effort in chat_template_kwargs of the request"),
    lacks(Other, "--reasoning-budget", "-1", kPlainAnswer),
    lacks(Other, "--reasoning-budget-message", "none", kPlainAnswer),
    lacks(Other, "--reasoning-preserve, --no-reasoning-preserve", "enabled",
          "Give preserve_reasoning in chat_template_kwargs of the request"),
    has(Other, "--chat-template", "template taken from model's metadata"),
    has(Other, "--chat-template-file", "template taken from model's metadata"),
    lacks(Other, "--skip-chat-parsing, --no-skip-chat-parsing", "disabled", kPlainAnswer),
    lacks(Other, "--prefill-assistant, --no-prefill-assistant", "prefill enabled", kPlainAnswer),
    lacks(Other, "-sps, --slot-prompt-similarity", "0.10", kOneRequest),
    lacks(Other, "--lora-init-without-apply", "disabled",
          "Adapters are not supported. Merge them into the model with llama-export-lora of "
          "llama.cpp"),
    lacks(Other, "--sleep-idle-seconds", "-1; -1 = disabled",
          "DELETE /api/v1/models/ID/load unloads a model"),
    lacks(Other, "--log-prompts-dir", "disabled", "Every request is recorded with its prompt"),
    lacks(Other, "--embd-gemma-default", "", kNoDownload),
    lacks(Other, "--fim-qwen-1.5b-default", "", kNoDownload),
    lacks(Other, "--fim-qwen-3b-default", "", kNoDownload),
    lacks(Other, "--fim-qwen-7b-default", "", kNoDownload),
    lacks(Other, "--fim-qwen-7b-spec", "", kNoSpeculation),
    lacks(Other, "--fim-qwen-14b-spec", "", kNoSpeculation),
    lacks(Other, "--fim-qwen-30b-default", "", kNoDownload),
    lacks(Other, "--gpt-oss-20b-default", "", kNoDownload),
    lacks(Other, "--gpt-oss-120b-default", "", kNoDownload),
    lacks(Other, "--vision-gemma-4b-default", "", kNoDownload),
    lacks(Other, "--vision-gemma-12b-default", "", kNoDownload),
    lacks(Other, "--spec-default", "", kNoSpeculation),
};

constexpr std::string_view kSeparator = ", ";

}  // namespace

bool LlamaServerOption::has_name(std::string_view name) const {
  return std::ranges::any_of(names | std::views::split(kSeparator), [&](auto&& one) {
    return std::string_view(one.begin(), one.end()) == name;
  });
}

std::string_view LlamaServerOption::long_name() const {
  for (auto&& one : names | std::views::split(kSeparator))
    if (const std::string_view name(one.begin(), one.end()); name.starts_with("--")) return name;
  return names;
}

std::span<const LlamaServerOption> llama_server_options() { return kOptions; }

const LlamaServerOption* llama_server_option(std::string_view name) {
  const auto found = std::ranges::find_if(
      kOptions, [&](const LlamaServerOption& option) { return option.has_name(name); });
  return found == kOptions.end() ? nullptr : &*found;
}

}  // namespace tt
