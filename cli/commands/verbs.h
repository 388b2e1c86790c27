// The verbs of tt. To add one, write commands/NAME_command.cpp (with _ for -) and declare its
// function and its row here; CMakeLists.txt and ./tt use the names of this table.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <functional>

namespace tt::cli {

// Runs a verb after the arguments are parsed. Returns the exit code: 0; 1 if something could not be
// read or written; 2 for invalid usage; 130 after an interrupt.
using RunVerb = std::function<int()>;

// Each adds the options of a verb to `command`. The returned function owns the parsed values; it
// must exist while `command` is parsed.
RunVerb add_analyze_command(CLI::App& command);
RunVerb add_attach_command(CLI::App& command);
RunVerb add_bench_model_command(CLI::App& command);
RunVerb add_compare_command(CLI::App& command);
RunVerb add_debug_command(CLI::App& command);
RunVerb add_disk_command(CLI::App& command);
RunVerb add_export_command(CLI::App& command);
RunVerb add_generality_command(CLI::App& command);
RunVerb add_gguf_command(CLI::App& command);
RunVerb add_graph_command(CLI::App& command);
RunVerb add_heads_command(CLI::App& command);
RunVerb add_hot_command(CLI::App& command);
RunVerb add_import_command(CLI::App& command);
RunVerb add_memory_command(CLI::App& command);
RunVerb add_model_command(CLI::App& command);
RunVerb add_moe_command(CLI::App& command);
RunVerb add_parse_command(CLI::App& command);
RunVerb add_pattern_command(CLI::App& command);
RunVerb add_record_command(CLI::App& command);
RunVerb add_report_command(CLI::App& command);
RunVerb add_reuse_command(CLI::App& command);
RunVerb add_show_command(CLI::App& command);
RunVerb add_sql_command(CLI::App& command);
RunVerb add_trend_command(CLI::App& command);
RunVerb add_values_command(CLI::App& command);
RunVerb add_weights_command(CLI::App& command);

struct Verb {
  const char* name;
  const char* description;
  RunVerb (*add)(CLI::App& command);
  const char* variable_prefix = "TT_";  // of the environment variables that set its options
};

// In the order of --help.
inline constexpr std::array kVerbs = {
    Verb{"analyze", "Ask one question about a session: every analysis of the REST API",
         add_analyze_command},
    // Another prefix, because --output has another meaning in other verbs.
    Verb{"attach", "Run a program that uses llama.cpp, such as llama-server, and record it",
         add_attach_command, "TT_ATTACH_"},
    Verb{"bench-model",
         "Measure a model's speed and what recording costs, or compare two measurements",
         add_bench_model_command, "TT_BENCH_"},
    Verb{"compare", "Compare two sessions: tokens, graphs, bytes and time", add_compare_command},
    Verb{"debug", "Run a model step by step: stop at ops, look at their values, change them",
         add_debug_command},
    Verb{"disk", "Show what the disk read for a session, from a recording of blktrace",
         add_disk_command},
    Verb{"export", "Export a session to a file format of other tools", add_export_command},
    // Another prefix, because --slots takes several numbers in other verbs.
    Verb{"generality",
         "Check whether experts, read order and pinning learned on one session hold for others",
         add_generality_command, "TT_GENERALITY_"},
    Verb{"gguf", "List a model's tensors with file offsets, or show the compression of its weights",
         add_gguf_command},
    Verb{"graph", "Print the graph of a step as DOT for Graphviz or as JSON", add_graph_command},
    Verb{"heads",
         "Show the weight bytes of each attention head, or the KV cache reads of each step",
         add_heads_command},
    Verb{"hot", "Show the most and least accessed tensors, layers, ops or other rows",
         add_hot_command},
    Verb{"import", "Create a session from a log (NDJSON) or a run folder", add_import_command},
    Verb{"memory", "Show what a token reads under a memory budget, and which way of running helps",
         add_memory_command},
    // Another prefix, because --context has another meaning in other verbs.
    Verb{"model",
         "Write a GGUF model of a real architecture with random weights, for tests and demos",
         add_model_command, "TT_MODEL_"},
    Verb{"moe", "Show which experts a session used, and whether pinning them in memory would help",
         add_moe_command},
    Verb{"parse", "List the accesses of a session, summarize them, or validate the recording",
         add_parse_command},
    Verb{"pattern", "Check whether each token accesses the same bytes, and in what order",
         add_pattern_command},
    Verb{"record", "Run one prompt and record it to a session file, without a server",
         add_record_command},
    Verb{"report", "Write a report with findings, advice and charts, in one file",
         add_report_command},
    Verb{"reuse", "Show how many weight reads a cache would save: LRU, pinned, optimal",
         add_reuse_command},
    Verb{"show", "Show a session's model, times, graphs and answer", add_show_command},
    Verb{"sql", "Run a SELECT statement on a session", add_sql_command},
    // Another prefix, because --by has other words in other verbs.
    Verb{"trend", "Show whether times, rates and bytes of sessions rise or fall over days",
         add_trend_command, "TT_TREND_"},
    Verb{"values", "Show the values of op outputs that a session has captured", add_values_command},
    // Another prefix, because --format has other values in other verbs.
    Verb{"weights", "Show the weights of a model, what quantization lost, and which may be smaller",
         add_weights_command, "TT_WEIGHTS_"},
};

}  // namespace tt::cli
