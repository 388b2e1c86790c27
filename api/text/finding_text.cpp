#include "api/text/finding_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <format>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/common/format_units.h"
#include "api/text/escape_control_chars.h"
#include "api/text/listed.h"

namespace tt {

namespace {

std::string bytes(const Figures& f, std::string_view name) {
  return format_bytes(f.number_or(name, 0));
}
std::string rate(const Figures& f, std::string_view name) { return bytes(f, name) + "/s"; }
std::string duration(const Figures& f, std::string_view name) {
  return format_duration(f.number_or(name, 0));
}
std::string share(const Figures& f, std::string_view name) {
  return format_percent(f.number_or(name, 0), 1);
}
std::uint64_t count(const Figures& f, std::string_view name) {
  return static_cast<std::uint64_t>(std::llround(f.number_or(name, 0)));
}
bool is_yes(const Figures& f, std::string_view name) { return f.word(name) == "yes"; }
bool has(const Figures& f, std::string_view name) { return f.number_or(name, 0) > 0; }

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// " because of the memory budget of 8.00 MiB"; "": none is active.
std::string because_of_budget(const Figures& f) {
  if (!f.number("memory_budget")) return "";
  return has(f, "memory_budget")
             ? std::format(" because of the memory budget of {}", bytes(f, "memory_budget"))
             : " because of the memory budget";
}

// --- machine ----------------------------------------------------------------------

std::string disturbed_kinds(const Figures& f) {
  std::vector<std::string> kinds;
  const auto add = [&](const char* name, const char* was, const char* were, const char* what) {
    const std::uint64_t n = count(f, name);
    if (n > 0) kinds.push_back(std::format("{} {}{}", n, n == 1 ? was : were, what));
  };
  add("steps_contended", "was", "were", " contended");
  add("steps_throttled", "was", "were", " throttled");
  add("steps_disk", "waited", "waited", " for the disk");
  return listed(kinds);
}

std::string machine_text(const Finding& finding) {
  const Figures& f = finding.figures;
  const std::uint64_t disturbed =
      count(f, "steps_contended") + count(f, "steps_throttled") + count(f, "steps_disk");
  if (f.word("verdict") == "clean" && disturbed > 0) {
    return std::format("{} clean; of {}, {}.",
                       10 * disturbed <= finding.basis.steps ? "Nearly all steps are"
                                                             : "The session as a whole is",
                       counted(finding.basis.steps, "step"), disturbed_kinds(f));
  }
  // What is usually advised, to keep all weights in memory, is what a budget rules out.
  if (f.word("verdict") == "disk" && f.number("memory_budget")) {
    return std::format(
        "Disk: the threads waited{}{}. The reason is the memory budget{}: the weights that it does "
        "not keep are read again. {} of {} are not clean.",
        f.number("blocked") ? std::format(" for {} of their time", share(f, "blocked")) : "",
        f.number("read_from_disks")
            ? std::format(" in steps with {}; {} were read",
                          counted(count(f, "major_faults"), "major page fault"),
                          bytes(f, "read_from_disks"))
            : "",
        has(f, "memory_budget") ? " of " + bytes(f, "memory_budget") : "",
        finding.basis.steps - std::min(finding.basis.steps, count(f, "steps_clean")),
        counted(finding.basis.steps, "step"));
  }
  return capitalised(std::string(f.word("text")));
}

// --- bytes ------------------------------------------------------------------------

// "3.00 MiB of weights in the mapped file" of "weights_disk".
std::optional<std::string> part_name(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kParts[] = {
      {"weights_disk", "weights in the mapped file"},
      {"weights_repacked", "repacked weights"},
      {"weights_device", "weights on a device"},
      {"weights_buffer", "weights that were copied into memory"},
      {"kv_cache", "KV cache"},
      {"recurrent_state", "recurrent state"},
      {"intermediate", "intermediate results and inputs"}};
  const auto known =
      std::ranges::find(kParts, name, &std::pair<std::string_view, const char*>::first);
  if (known != std::end(kParts)) return known->second;
  if (name.starts_with("weights_") && name != "weights_of_model_file")
    return std::format("weights in memory of type {}", name.substr(8));
  return std::nullopt;
}

std::string repeated_prompt_text(const Figures& f) {
  const auto quoted = [&](const char* name) { return escape_control_chars(f.word(name)); };
  const std::string earlier =
      f.word("from_session").empty()
          ? "the request before"
          : std::format("the request before (session {})", f.word("from_session"));
  const std::string difference =
      f.word("text_prompt").empty()
          ? ""
          : std::format("{}{} the prompt has “{}” where that has “{}”",
                        has(f, "message") ? std::format("in message {} ({}) ", count(f, "message"),
                                                        quoted("message_begin"))
                                          : "",
                        f.word("text_before").empty()
                            ? "at its begin"
                            : std::format("after “{}”", quoted("text_before")),
                        quoted("text_prompt"), quoted("text_cached"));
  const std::string_view reason = f.word("reason");
  std::string why;
  if (reason == "other_token") {
    why = std::format("the first {} are the same, then {}",
                      counted(count(f, "common_tokens"), "token"), difference);
  } else {
    why = std::format(
        "the first {} are the same, but {}", counted(count(f, "common_tokens"), "token"),
        reason == "sliding_window" ? "the cache no longer had all tokens of the sliding window"
        : reason == "not_kept"     ? "the program did not reuse them"
                                   : "a recurrent state cannot be taken back to an earlier token");
    if (!difference.empty()) why += "; " + difference;
  }
  return std::format(
      "{} of the {} prompt tokens were evaluated again, in about {}, although {} had "
      "evaluated the same text: {}.",
      count(f, "repeated_tokens"), count(f, "prompt_tokens"), duration(f, "repeated_time"), earlier,
      why);
}

// Whether the bytes came from RAM. "": not recorded.
std::string memory_or_disk(const Figures& f) {
  if (!f.number("disk_waits")) return "";
  const std::uint64_t waits = count(f, "disk_waits");
  if (waits == 0)
    return has(f, "weights_disk")
               ? " All of it came from RAM, also the mapped file: no op waited for the disk."
               : " All of it came from RAM: no op waited for the disk.";
  return std::format(
      " It came from RAM, except pages of the mapped file that were not there: ops waited {} for "
      "the disk to read them.",
      waits == 1 ? "once" : std::format("{} times", waits));
}

// The parts are in the order of their size.
std::string bytes_text(const Finding& finding) {
  const Figures& f = finding.figures;
  std::vector<std::string> parts;
  for (const Figure& figure : f.all()) {
    const auto name = part_name(figure.name);
    if (name && figure.unit == FigureUnit::Size)
      parts.push_back(std::format("{} of {}", format_bytes(std::get<double>(figure.value)), *name));
  }
  if (is_yes(f, "interrupted"))
    return std::format("No step ran to its end. The ops that ran read {}: {}.",
                       bytes(f, "bytes_read"), listed(parts));
  return std::format(
      "{} reads {}: {}.{}{}",
      finding.basis.phase == Phase::Generate ? "A generated token" : "A step",
      bytes(f, "bytes_read"), listed(parts),
      f.number("weights_of_model_file")
          ? std::format(" The weights are {} of the model file.", share(f, "weights_of_model_file"))
          : "",
      memory_or_disk(f));
}

// --- speed ------------------------------------------------------------------------

std::string layers_text(const Finding& finding, const std::string& of_steps) {
  const Figures& f = finding.figures;
  const std::string_view first = f.word("slowest_layer"), second = f.word("second_layer");
  if (first.empty()) return "";
  if (second.empty())
    return std::format(" Layer {} takes {} of the op time of a step{}.", first,
                       share(f, "slowest_layer_time"), of_steps);
  if (!is_yes(f, "layers_differ"))
    return std::format(" No layer is clearly the slowest{}: layers {} and {} take {} and {}.",
                       of_steps, first, second, share(f, "slowest_layer_time"),
                       share(f, "second_layer_time"));
  return std::format(" Layer {} is the slowest{}: {} of the op time, then layer {}: {}.", first,
                     of_steps, share(f, "slowest_layer_time"), second,
                     share(f, "second_layer_time"));
}

// "10.0 to 11.0 GiB/s of the 12.0 GiB/s that this machine can read".
std::string bandwidth_text(const Figures& f) {
  return std::format("{} to {} of the {} that this machine can read", rate(f, "read_rate_low"),
                     rate(f, "read_rate_high"), rate(f, "read_bandwidth"));
}

// A step that reads faster shows that the measured bandwidth is not what limits the session.
std::string exceeded_text(const Figures& f) {
  return std::format(
      "its fastest step read {}, faster than the read bandwidth that was measured on this machine "
      "({}). Either other programs disturbed that measurement, or caches served a part of the "
      "bytes. To measure it again, remove the stored result "
      "(~/.cache/tensor-trace/read_bandwidth) and load the model while no other program runs",
      rate(f, "read_rate_fastest"), rate(f, "read_bandwidth"));
}

// Why it is not known what limits the speed, and how to know it.
struct UnknownLimit {
  std::string_view word;  // the figure unknown_because
  const char* brief;      // for the headline
  std::string (*text)(const Figures&);
};
// The read bandwidth is missing.
constexpr const char* kNotMeasured = "unknown: memory bandwidth not measured";
std::string not_measured(std::string_view why) {
  return std::format("the read bandwidth of the machine was not measured: {}", why);
}
std::string options_of_threads(const Figures& f) {
  return has(f, "threads") ? std::format("-m MODEL -t {}", count(f, "threads")) : "-m MODEL";
}
constexpr UnknownLimit kUnknownLimits[] = {
    {"no_conditions", "unknown",
     [](const Figures&) -> std::string {
       return "whether the steps waited for a processor was not recorded";
     }},
    {"near_bandwidth", "near memory bandwidth",
     [](const Figures& f) {
       return "the ops read " + bandwidth_text(f) + ", which is near the limit";
     }},
    {"exceeded_bandwidth", "unknown: faster than the measured bandwidth",
     [](const Figures& f) { return exceeded_text(f); }},
    {"few_steps", "unknown: too few steps",
     [](const Figures& f) {
       return std::format(
           "at least {} undisturbed generated steps are needed, and the session has {}. Generate "
           "more tokens",
           count(f, "rates_needed"), count(f, "rates"));
     }},
    {"no_generation", "unknown: nothing generated",
     [](const Figures&) -> std::string {
       return "it is computed from generated steps, and the session has none";
     }},
    {"other_device", "unknown: another device computed",
     [](const Figures&) -> std::string {
       return "not only the CPU computed, and the bandwidth of other devices is not measured";
     }},
    {"other_threads", kNotMeasured,
     [](const Figures& f) {
       return std::format(
           "the read bandwidth of the machine was measured with {}, and the steps "
           "ran with {}. To measure it: `tt record {}`, while no other program runs",
           counted(count(f, "measured_with_threads"), "thread"), count(f, "threads"),
           options_of_threads(f));
     }},
    {"small_model", kNotMeasured,
     [](const Figures&) {
       return not_measured("the model file is not larger than the last cache of the processor");
     }},
    {"no_folder", kNotMeasured,
     [](const Figures&) {
       return not_measured(
           "there is no folder to store it. Set HOME or XDG_CACHE_HOME and record "
           "again");
     }},
    {"little_memory", kNotMeasured,
     [](const Figures&) {
       return not_measured(
           "the buffer for it was larger than a quarter of the free memory. Load the model again "
           "when more memory is free, and record "
           "again");
     }},
    {"busy", kNotMeasured,
     [](const Figures&) {
       return not_measured(
           "other programs used the processors when the model was loaded. Load it "
           "again while no other program runs, and record again");
     }},
    {"not_stored", kNotMeasured,
     [](const Figures& f) {
       return not_measured(std::format(
           "`tt attach` only looks it up. To measure it, record the model once without the "
           "attached program: `tt record {}`. Later recordings of `tt attach` have it",
           options_of_threads(f)));
     }},
    {"imported", kNotMeasured,
     [](const Figures&) {
       return not_measured(
           "the session was imported, from a log without it. `tt record` and "
           "`tt-server` measure it");
     }},
    {"not_recorded", kNotMeasured, [](const Figures& f) {
       return not_measured(
           std::format("the recording does not have it. To measure it, record "
                       "again: `tt record {}`",
                       options_of_threads(f)));
     }}};
// A reason that a later version recorded is as if there were none.
const UnknownLimit& unknown_limit(const Figures& f) {
  const auto known =
      std::ranges::find(kUnknownLimits, f.word("unknown_because"), &UnknownLimit::word);
  return known == std::end(kUnknownLimits) ? *std::rbegin(kUnknownLimits) : *known;
}

std::string limit_text(const Finding& finding) {
  const Figures& f = finding.figures;
  const std::string basis =
      f.number("speed") ? std::format(" ({} without the prompt)", speed_text(*f.number("speed")))
                        : "";
  const std::string_view limit = f.word("limit"), use = f.word("bandwidth_use");
  std::string text;
  if (limit == "disk") {
    text = std::format("Reading from the disk limits the speed{}{}", because_of_budget(f), basis);
    if (f.word("verdict") == "disk" && f.number("blocked"))
      text += std::format(": the threads waited {} of their time", share(f, "blocked"));
  } else if (limit == "waiting") {
    text = std::format(
        "Waiting for a processor limits the speed{}: the threads waited for {} of "
        "their time",
        basis, share(f, "waited"));
    if (f.number_or("stopped", 0) > 0)
      text += std::format(", and a CPU limit stopped them for {}", share(f, "stopped"));
  } else if (limit == "cpu_limit") {
    text =
        std::format("A CPU limit limits the speed{}: it stopped the threads for {} of their time",
                    basis, share(f, "stopped"));
    if (f.number_or("waited", 0) > 0)
      text += std::format(", and they waited for a processor for {}", share(f, "waited"));
  } else if (limit == "disturbed") {
    text = std::format("What limits the speed{} is unknown, because the run was {}", basis,
                       f.word("verdict") == "contended"
                           ? "contended (its threads waited for a processor)"
                           : "throttled (a CPU limit or heat slowed it down)");
    if (use == "exceeded")
      text += ". Its distance from the bound is not known either: " + exceeded_text(f);
    else if (has(f, "read_rate_fastest") && has(f, "read_bandwidth"))
      text += std::format(
          ". Its fastest step read {}, {} of the {} that this machine can read",
          rate(f, "read_rate_fastest"),
          format_percent(f.number_or("read_rate_fastest", 0) / f.number_or("read_bandwidth", 1), 1),
          rate(f, "read_bandwidth"));
  } else if (limit == "sampling") {
    text = std::format("Sampling limits the speed{}: it takes {} of the time of generation", basis,
                       share(f, "sampling"));
  } else if (limit == "bandwidth") {
    text = std::format("Memory bandwidth limits the speed{}: {}", basis, bandwidth_text(f));
  } else if (limit == "computation") {
    text = std::format("Computation limits the speed{}: ", basis);
    text += use == "from_cache" ? "the weights fit into the last cache of the processor"
                                : "the ops read " + bandwidth_text(f);
  } else {
    text = std::format("What limits the speed{} is unknown: {}", basis, unknown_limit(f).text(f));
  }
  text += '.';
  if (has(f, "bound_speed"))
    text += std::format(" What a token reads, at {}, allows at most {}.", rate(f, "read_bandwidth"),
                        speed_text(*f.number("bound_speed")));
  std::string of_steps;
  if (!f.word("verdict").empty()) {
    constexpr std::uint64_t kFewSteps = 16;
    const std::uint64_t clean = count(f, "clean_steps");
    if (clean == 0) {
      text +=
          " No step was clean: which op and layer take the most time is not known. Tables and "
          "charts "
          "show times that include the waiting.";
    } else if (clean < kFewSteps) {
      of_steps = std::format(" in {} of {}", counted(clean, "clean step"), finding.basis.steps);
    }
  }
  if (!f.word("slowest_op").empty()) {
    const std::string of_clean =
        f.word("verdict").empty()
            ? ""
            : std::format("In the {}, ", counted(count(f, "clean_steps"), "clean step"));
    text +=
        std::format(" {}{} takes {} of the op time of a step (by medians), at {}.", of_clean,
                    f.word("slowest_op"), share(f, "slowest_op_time"), rate(f, "slowest_op_rate"));
  }
  return text + layers_text(finding, of_steps);
}

// --- order and repetition ---------------------------------------------------------

std::string order_text(const Figures& f) {
  if (!f.number("in_order"))
    return "No weights are read from the mapped model file: they are copies in memory.";
  // The finding on the bytes says how much each part is.
  return std::format(
      "Of the bytes that are read from the mapped model file, {} are read in file order: from at "
      "most {} after the end of the read before.{}",
      share(f, "in_order"), bytes(f, "gap"),
      f.word("all_mapped") == "no" ? " The other weights are read from copies in memory." : "");
}

std::string repeat_text(const Figures& f) {
  const std::uint64_t pairs = count(f, "pairs"), same = count(f, "same_weights");
  if (pairs == 0) return "There are no two generated tokens to compare.";
  const bool has_experts = f.number("experts_again").has_value();
  const bool other_graph = has(f, "accesses_of_other_graph");
  if (same == pairs) {
    std::vector<std::string> others;
    if (has(f, "accesses_of_other_rows")) others.emplace_back("another row of the embedding");
    if (has(f, "accesses_of_other_cells")) others.emplace_back("more of the KV cache");
    return std::format("In all {} of consecutive generated tokens, both read the same weights{}.",
                       counted(pairs, "pair"),
                       count(f, "identical") == pairs ? ", with the same accesses"
                       : others.empty()               ? ""
                                                      : "; the second reads " + listed(others));
  }
  if (has_experts && !other_graph)
    return std::format(
        "Each generated token reads the same weights as the previous token, except experts: {} of "
        "its experts were also used by the previous token, in the same layer.",
        share(f, "experts_again"));
  std::vector<std::string> causes;
  if (has(f, "accesses_of_other_experts")) causes.emplace_back("other experts");
  if (other_graph) causes.emplace_back("other ops");
  return std::format(
      "In {} of {} of consecutive generated tokens, both read the same weights{}.{}", same,
      counted(pairs, "pair"),
      causes.empty() ? "" : "; in the others, the second used " + listed(causes),
      has_experts ? std::format(" Of the experts of a token, {} were also used by the previous "
                                "token, in the same layer.",
                                share(f, "experts_again"))
                  : "");
}

// --- waits and memory -------------------------------------------------------------

std::string waits_text(const Figures& f) {
  if (!f.number("waits")) return "Waits for the disk were not recorded.";
  const std::uint64_t waits = count(f, "waits"), generating = count(f, "waits_generating");
  if (waits == 0) return "No op waited for the disk.";
  const std::string most =
      f.word("most_for").empty()
          ? ""
          : std::format(", most often for {} ({})", f.word("most_for"), share(f, "most_share"));
  if (waits == 1)
    return std::format(
        "Ops waited for the disk once (page fault), {}while tokens were generated{}.",
        generating == 1 ? "" : "not ", most);
  return std::format(
      "Ops waited for the disk {} times (page faults), {} of these while tokens were generated{}.",
      waits, generating, most);
}

std::string enough_text(const Figures& f) {
  std::vector<std::string> parts = {bytes(f, "file") + " for the weights in the file"};
  if (has(f, "repacked")) parts.push_back(bytes(f, "repacked") + " of repacked weights");
  if (has(f, "kv_cache"))
    parts.push_back(std::format(
        "{} of KV cache{}", bytes(f, "kv_cache"),
        has(f, "cache_tokens")
            ? std::format(" (reserved for {})", counted(count(f, "cache_tokens"), "token"))
            : ""));
  if (has(f, "recurrent_state"))
    parts.push_back(bytes(f, "recurrent_state") + " of recurrent state");
  const bool exact = is_yes(f, "exact"), interrupted = is_yes(f, "interrupted");
  const std::string attention =
      f.word("flash_attention").empty()
          ? ""
          : std::format(" (flash attention {})", f.word("flash_attention"));
  parts.push_back(exact ? bytes(f, "compute") + " of compute buffers" + attention
                        : std::format("at least {} of compute buffers, whose size was not recorded",
                                      bytes(f, "compute")));
  std::string text = std::format(
      "{} of RAM are {}, so that each weight is read from the disk only once: {}. Not counted: "
      "the program itself (its code, the vocabulary and the recording).{}",
      (exact && !interrupted ? "" : "At least ") + bytes(f, "enough"),
      exact && !interrupted ? "enough" : "needed", listed(parts),
      interrupted ? " No step ran to its end: what the ops after it need is not counted." : "");
  if (f.word("reread_ever") == "no")
    return text + " This session needs less: it reads no weight twice.";
  if (!f.number("less_memory")) return text;
  return text + std::format(
                    " Of the sizes of memory for weights that were simulated ({}no memory budget), "
                    "the step from {} to {} saves the most: with {}, {} of the bytes of weights "
                    "that the ops read come from the disk, with {}, {}.",
                    has(f, "repacked") ? "not repacked, " : "", bytes(f, "less_memory"),
                    bytes(f, "more_memory"), bytes(f, "less_memory"), share(f, "reread_with_less"),
                    bytes(f, "more_memory"), share(f, "reread_with_more"));
}

std::string fit_text(const Figures& f) {
  const double mapped = f.number_or("mapped", 0);
  if (mapped <= 0)
    return std::format(
        "Memory: the {} of weights that were read are copies in memory, made at load (repacked, or "
        "not mapped). Pinning or caching parts of the model file would gain nothing.",
        bytes(f, "copies"));
  const std::string copies =
      has(f, "copies")
          ? std::format("; {} more are copies in memory, made at load", bytes(f, "copies"))
          : "";
  if (f.number_or("available", 0) < mapped)
    return std::format(
        "Memory: the {} of mapped weights that were read do not fit into the {} of available "
        "memory{}.",
        bytes(f, "mapped"), bytes(f, "available"), copies);
  return std::format(
      "Memory: the {} of mapped weights that were read fit into the {} of available memory{}. "
      "Pinning or caching them would gain nothing after their first read.",
      bytes(f, "mapped"), bytes(f, "available"), copies);
}

// " An estimate: at most 50 % of the time of generation." "": no gain is known.
std::string gain_text(const Advice& advice) {
  if (!advice.estimated_gain) return "";
  return std::format(" Estimate, not measured: this saves at most {} of the time.",
                     format_percent(*advice.estimated_gain, 1));
}

std::string pin_reason(const Figures& f) {
  return std::format(
      "The session reads {} of mapped weights and {} of memory are available. The kernel's cache "
      "(LRU) can serve {} of the bytes read, pinned weights {}; no policy serves more than {}.",
      bytes(f, "mapped"), bytes(f, "available"), share(f, "saved_by_lru"),
      share(f, "saved_by_pinning"), share(f, "saved_at_most"));
}

AdviceText pin_text(const Figures& f) {
  std::string names;
  for (const Figure& figure : f.all())
    if (figure.name == "weights")
      names += (names.empty() ? "" : "; ") + std::get<std::string>(figure.value);
  if (has(f, "more_weights")) names += std::format("; and {} more", count(f, "more_weights"));
  std::string because = pin_reason(f);
  because += std::format(
      " The gain is {} less to read from the disk{}, by simulation. --memory-budget is an option "
      "of "
      "tt-server and tt record; llama.cpp has none that pins chosen weights: its --load-mode "
      "mmap+mlock locks the file from its start.",
      bytes(f, "less_read"),
      has(f, "generated_tokens")
          ? std::format(" in {} and the prompt",
                        counted(count(f, "generated_tokens"), "generated token"))
          : "");
  if (is_yes(f, "repacked")) because += " The budget switches repacking off.";
  return {.advice = std::format("Pin {} with --memory-budget auto: {}.", bytes(f, "pinned"), names),
          .because = std::move(because)};
}

AdviceText faults_text(const Figures& f) {
  std::string because = std::format(
      "Each generated token waited for the disk {:.1f} times (page faults): bytes that it reads "
      "were not in memory",
      f.number_or("waits_per_token", 0));
  if (const auto most = f.word("most_for"); !most.empty())
    because += std::format(", most often bytes of {}", most);
  because += has(f, "available")
                 ? std::format(", although {} of memory were available.", bytes(f, "available"))
                 : ".";
  return {.advice = is_yes(f, "locked")
                        ? "Keep the weights in memory: run fewer other programs."
                        : "Keep the weights in memory: use --load-mode mmap+mlock (older "
                          "llama.cpp: --mlock), or run fewer other programs.",
          .because = std::move(because)};
}

AdviceText sampling_text(const Figures& f) {
  const bool grammar = is_yes(f, "grammar");
  const double part = f.number_or("sampling", 0);
  return {.advice = grammar ? "Use a simpler grammar: sampling limits the speed of generation."
                            : "Use fewer samplers, or a smaller top-k first: sampling limits the "
                              "speed of generation.",
          .because = std::format(
              "Choosing the tokens after the first took {} of the time of generation{}, {} per "
              "token. Without it, generation would be {:.1f} times as fast; a faster evaluation "
              "(more threads, fewer bytes) cannot save more than the other {}.",
              share(f, "sampling"), grammar ? ", with a grammar" : "", duration(f, "per_token"),
              f.number_or("times_as_fast", 1), format_percent(1 - part, 1))};
}

AdviceText change_nothing(const Figures& f) {
  const std::string_view use = f.word("bandwidth_use");
  const bool knows_bandwidth = use != "unknown" && use != "exceeded";
  const bool knows_machine = f.word("conditions") != "unknown";
  std::string because = std::format(
      "Checked: memory and page faults, threads, repacking, flash attention, devices{}.{}",
      knows_bandwidth ? ", and whether memory bandwidth is the limit" : "",
      knows_bandwidth ? "" : " Not checked: whether memory bandwidth is the limit.");
  if (knows_machine)
    return {"Change nothing: no option is known to make this session faster.", std::move(because)};
  return {"Nothing is known that would make this session faster.",
          because +
              " Not known: whether other programs slowed it, because the recording has no "
              "conditions of the machine."};
}

AdviceText words_of(const Advice& advice) {
  const Figures& f = advice.figures;
  const std::string session_is = "The session is " + std::string(f.word("conditions"));
  const std::uint64_t threads = count(f, "threads"), processors = count(f, "processors");
  switch (advice.kind) {
    case AdviceKind::DoNotTrust:
      return {"Do not trust this recording until its failed checks are explained.",
              std::format("{}: {}", f.word("check"), f.word("evidence"))};
    case AdviceKind::ThreadsAboveProcessors:
      return {std::format("Use no more threads than processors (-t {}, when the program starts), "
                          "and record again.",
                          processors),
              session_is};
    case AdviceKind::StopOtherPrograms:
      return {is_yes(f, "below_one_processor") ? "Raise the CPU limit, and record again."
              : threads == 1                   ? "Stop other programs, and record again."
                             : "Stop other programs, or use fewer threads (-t, when the program "
                               "starts), and record again.",
              session_is};
    case AdviceKind::RaiseCpuLimit:
      return {
          "Raise the CPU limit, or use no more threads (-t, when the program starts) than it "
          "allows.",
          session_is};
    case AdviceKind::SimplerSampling:
      return sampling_text(f);
    case AdviceKind::PinWeights:
      return pin_text(f);
    case AdviceKind::LessWeightsOrMoreMemory:
      return {"Use a smaller model file, or more memory: no option would help.", pin_reason(f)};
    case AdviceKind::KeepWeights:
      return faults_text(f);
    case AdviceKind::FewerBytes:
      return {"Read fewer bytes per token: memory bandwidth limits the speed.",
              std::format("The ops read {}, so more compute does not help. Half the bytes need at "
                          "least half the time. Whether the kernels of another quantization reach "
                          "the same rate is not known: record it, too, and compare (tt compare).",
                          bandwidth_text(f))};
    case AdviceKind::FlashAttention:
      return {"Try flash attention (-fa on, when the program starts).",
              std::format("Attention takes {} of the time, and without flash attention each token "
                          "reads the whole padded window of the cache.",
                          share(f, "attention"))};
    case AdviceKind::FewerThreads:
      return {std::format("Use fewer threads (-t {}, when the program starts).", processors),
              std::format("The session used {} threads on {}: they wait for each other at the end "
                          "of every op.",
                          threads, counted(processors, "allowed processor"))};
    case AdviceKind::MoreThreads:
      return {std::format("Try more threads (-t {}, when the program starts).", processors),
              std::format("The session used {} on {}. The gain is less where memory bandwidth is "
                          "the limit.",
                          counted(threads, "thread"), counted(processors, "processor"))};
    case AdviceKind::Repack:
      return {"Let weights be repacked (remove --no-repack).",
              std::format("The weights ({} read) were used in the file's layout. Kernels for "
                          "repacked weights are faster on most processors, and need up to {} of "
                          "memory for the copies; record once more and compare (tt compare) to see "
                          "the gain.",
                          bytes(f, "weights_read"), bytes(f, "copies"))};
    case AdviceKind::UseDevice:
      return {"Let the device compute (-ngl 99).",
              std::format("The host has {}, but all ops ran on the CPU. The gain depends on the "
                          "device: compare a recording of each.",
                          f.word("devices"))};
    case AdviceKind::MoreLayersOnDevice:
      return {"Give the device more layers (-ngl) if its memory allows it.",
              std::format("Ops on the CPU took {} of the time, {} of it {}, although the session "
                          "used {}.",
                          share(f, "on_cpu"), share(f, "slowest_op_of_cpu"), f.word("slowest_op"),
                          f.word("devices"))};
    case AdviceKind::ChangeNothing:
      return change_nothing(f);
  }
  return {};
}

// The run failed because of an invalid number, whose op is not known.
std::string unplaced_number_text(const Figures& f) {
  return std::format(
      "The run ended because the model computed an invalid number (NaN or infinity). {} To find "
      "its op: tt debug with \"break if nan\"; tt weights says whether a weight has invalid "
      "numbers.",
      f.word("level") == to_text(Level::Verbose)
          ? "No op with statistics had NaN in its output."
          : std::format("At level {} the values of the ops were not recorded.", f.word("level")));
}

std::string not_a_number_text(const Figures& f) {
  if (f.word("output").empty()) return unplaced_number_text(f);
  const bool is_nan = f.number_or("nan", 0) > 0;
  const auto first = count(f, "first_op"), op = count(f, "op");
  std::string text = std::format(
      "The first invalid number of the run is in {} (op {}, {}{}) in step {}: {} of {} are {}.",
      f.word("output"), op, f.word("operation_type"),
      f.number("layer") ? std::format(" of layer {}", count(f, "layer")) : std::string(),
      count(f, "step"), count(f, is_nan ? "nan" : "inf"), counted(count(f, "values"), "value"),
      is_nan ? "NaN" : "infinite");
  if (first < op)
    text += std::format(
        " It was made by one of the ops {} to {}: tt debug with \"break if nan\" says "
        "by which.",
        first, op);
  if (!f.word("weights").empty())
    text += std::format(" They read {}: tt weights says whether a weight has invalid numbers.",
                        f.word("weights"));
  return text;
}

std::string drafts_text(const Figures& f) {
  std::string text =
      std::format("Drafts: {} of {:.1f} tokens each; {:.1f} of them were accepted ({}). ",
                  counted(count(f, "drafts"), "draft"), f.number_or("drafted", 0),
                  f.number_or("accepted", 0), share(f, "accepted_share"));
  if (!f.number("draft_time"))
    return text + "What the draft model costs is in its own session, which is not beside this one.";
  if (!f.number("cost"))
    return text +
           std::format(
               "A draft takes {} in the draft model and {} to check. Whether it saves time is "
               "not known: too few steps had one token.",
               duration(f, "draft_time"), duration(f, "check_time"));
  const std::string_view effect = f.word("effect");
  return text + std::format(
                    "A draft costs {} ({} in the draft model; the step that checks it takes {} "
                    "instead of {}) and saves {}: {}.",
                    duration(f, "cost"), duration(f, "draft_time"), duration(f, "check_time"),
                    duration(f, "plain_time"), duration(f, "saving"),
                    effect == "faster"   ? "generation is faster with drafts"
                    : effect == "slower" ? "generation is slower with drafts"
                                         : "drafts make no difference");
}

// What a token of the prompt costs beside a generated one.
std::string phases_text(const Finding& finding) {
  const Figures& f = finding.figures;
  const double tokens = f.number_or("prompt_tokens_per_step", 0);
  std::string text = std::format("A token of the prompt reads {} and a generated token {}",
                                 bytes(f, "prompt_bytes_read"), bytes(f, "generate_bytes_read"));
  if (tokens > 1)
    text += std::format(": a step of the prompt evaluates {:.3g} tokens, which share the weights",
                        tokens);
  constexpr const char* kNoTime = "was disturbed, interrupted or the first of its graph";
  if (!f.number("prompt_time") && !f.number("generate_time"))
    return std::format("{}. Time per token: not measured, because each step {}.", text, kNoTime);
  const auto time = [&](const char* name) {
    return f.number(name) ? duration(f, name)
                          : std::format("not measured (each step of it {})", kNoTime);
  };
  // The speed of the run beside it counts everything.
  return std::format(
      "{}. Time per token, of the evaluation in undisturbed steps: {} in the prompt, {} in "
      "generation.",
      text, time("prompt_time"), time("generate_time"));
}

}  // namespace

std::string speed_text(double tokens_per_second) {
  // A model that is read from the disk takes seconds per token.
  if (tokens_per_second < 1) return std::format("{:.2g} tokens/s", tokens_per_second);
  return std::format("{:.{}f} tokens/s", tokens_per_second, tokens_per_second < 100 ? 1 : 0);
}

std::string finding_text(const Finding& finding) {
  const Figures& f = finding.figures;
  switch (finding.kind) {
    case FindingKind::DamagedFile:
      return std::format("The file is damaged: only the {} before the damage can be read.",
                         counted(count(f, "readable_steps"), "step"));
    case FindingKind::ReusedPrefix:
      return std::format("{} of the {} prompt tokens were reused{} and not evaluated.",
                         count(f, "reused_tokens"), count(f, "prompt_tokens"),
                         f.word("from_session").empty()
                             ? ""
                             : std::format(" from session {}", f.word("from_session")));
    case FindingKind::RepeatedPrompt:
      return repeated_prompt_text(f);
    case FindingKind::LoadWarning:
      return std::format("Warning of the load: {}", f.word("warning"));
    case FindingKind::AlteredValues:
      return std::format(
          "Values were changed while it ran, so the text is not that of the model "
          "alone: {} ({}{}).",
          counted(count(f, "changes"), "change"), f.word("first"),
          count(f, "changes") > 1 ? "; the facts of the session list all" : "");
    case FindingKind::NotANumber:
      return not_a_number_text(f);
    case FindingKind::MachineVerdict:
      return machine_text(finding);
    case FindingKind::LeftOutSteps:
      return std::format("Times and sums are without {} of {} steps, which were not clean.",
                         count(f, "left_out"), count(f, "steps"));
    case FindingKind::TokenBytes:
      return bytes_text(finding);
    case FindingKind::PromptAndGeneration:
      return phases_text(finding);
    case FindingKind::MappedShare:
      return std::format(
          "{} of all bytes touched are in the mapped model file, {} in other memory.",
          share(f, "mapped"), format_percent(1 - f.number_or("mapped", 0), 1));
    case FindingKind::SpeedLimit:
      return limit_text(finding);
    case FindingKind::PromptSpeed:
      return std::format("Prompt: {} in {}, {}.", counted(count(f, "tokens"), "token"),
                         duration(f, "time"), speed_text(f.number_or("speed", 0)));
    case FindingKind::FirstToken:
      return std::format("First token after {}.", duration(f, "time"));
    case FindingKind::GenerationSpeed:
      return std::format("Generation: {} after the first in {}, {}.",
                         counted(count(f, "tokens"), "token"), duration(f, "time"),
                         speed_text(f.number_or("speed", 0)));
    case FindingKind::Drafts:
      return drafts_text(f);
    case FindingKind::EvaluationTime:
      return std::format(
          "Evaluation took {} per generated token, in the mean of all {}{}.",
          duration(f, "per_token"), counted(finding.basis.steps, "step"),
          f.number("sampling")
              ? std::format("; sampling took {} of the time of generation", share(f, "sampling"))
              : "");
    case FindingKind::ReadInOrder:
      return order_text(f);
    case FindingKind::SameWeights:
      return repeat_text(f);
    case FindingKind::PatternPrediction:
      return std::format(
          "The access pattern of the first half predicts {} of the reads of the second half.",
          share(f, "predicted"));
    case FindingKind::DiskWaits:
      return waits_text(f);
    case FindingKind::EnoughMemory:
      return enough_text(f);
    case FindingKind::WeightsFit:
      return fit_text(f);
    case FindingKind::MemoryBudget:
      return std::format("Memory budget {}", f.word("text"));
  }
  return "";
}

AdviceText advice_text(const Advice& advice) {
  AdviceText words = words_of(advice);
  words.because += gain_text(advice);
  return words;
}

namespace {

std::string limit_in_brief(const Figures& f) {
  const std::string_view limit = f.word("limit"), verdict = f.word("verdict");
  if (limit == "disturbed") return std::format("unknown: {}", verdict);
  static constexpr std::pair<std::string_view, const char*> kLimits[] = {
      {"disk", "the disk"},
      {"waiting", "waiting for a processor"},
      {"cpu_limit", "a CPU limit"},
      {"sampling", "sampling"},
      {"bandwidth", "memory bandwidth"},
      {"computation", "computation"}};
  const auto known =
      std::ranges::find(kLimits, limit, &std::pair<std::string_view, const char*>::first);
  return known == std::end(kLimits) ? unknown_limit(f).brief : known->second;
}

}  // namespace

std::vector<HeadlineFigure> headline_of(std::span<const Finding> findings) {
  std::vector<HeadlineFigure> headline;
  for (const Finding& finding : findings) {
    const Figures& f = finding.figures;
    if (finding.kind == FindingKind::SpeedLimit) {
      if (f.number("speed"))
        headline.push_back({.name = "speed, no prompt", .value = speed_text(*f.number("speed"))});
      headline.push_back({.name = "limited by", .value = limit_in_brief(f)});
    }
    if (finding.kind == FindingKind::TokenBytes)
      headline.push_back(
          {.name = finding.basis.phase == Phase::Generate ? "read per token" : "read per step",
           .value = bytes(f, "bytes_read"),
           .topic = FindingTopic::BytesRead});
  }
  // The speed, the bytes, the limit.
  std::ranges::stable_sort(headline, {},
                           [](const HeadlineFigure& one) { return one.name == "limited by"; });
  return headline;
}

}  // namespace tt
