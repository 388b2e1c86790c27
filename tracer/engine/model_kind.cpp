#include "tracer/engine/model_kind.h"

#include <algorithm>
#include <array>
#include <format>
#include <string_view>

#include "tracer/engine/backends.h"

namespace tt {

namespace {

// Of stable-diffusion.cpp and ComfyUI; only for the wording.
constexpr std::array<std::string_view, 20> kImageModels = {
    "flux",       "flux2",   "sd1",    "sd2",  "sd3",   "sdxl",     "aura",
    "auraflow",   "hidream", "cosmos", "ltxv", "hyvid", "wan",      "lumina2",
    "qwen_image", "z_image", "chroma", "pig",  "sd",    "diffusion"};

std::string text_value(const GgufIndex& index, const char* key) {
  return value_of<std::string>(index.metadata(), key).value_or("").substr(0, 100);
}

bool has_tensor(const GgufIndex& index, std::string_view part) {
  return std::ranges::any_of(index.tensors(),
                             [&](const GgufTensor& tensor) { return tensor.name.contains(part); });
}

std::string reason(const GgufIndex& index) {
  const std::string type = text_value(index, "general.type");
  const std::string architecture = text_value(index, "general.architecture");
  if (type == "adapter" || has_tensor(index, ".lora_a")) {
    return "its type is \"adapter\": it changes a model (LoRA). Adapters are not supported. Give "
           "the path of the model, or merge both into one file with llama-export-lora.";
  }
  if (architecture == "controlvector" || type == "controlvector") {
    return "it is a control vector. Control vectors are not supported. Give the path of the model "
           "without it.";
  }
  if (architecture == "clip" || type == "mmproj" || type == "clip-vision") {
    return "it is an image projector (mmproj), a part of a model with image input, which is not "
           "supported. Give the path of the language model.";
  }
  if (is_importance_matrix(index))
    return "it is an importance matrix for quantization. Give the path of a model.";
  if (index.tensors().empty() && (type == "vocab" || !architecture.empty())) {
    return "it has no tensors, only metadata and a vocabulary. Give the path of the complete model "
           "(or, of a split model, its first part).";
  }
  // Other types do not matter to llama.cpp: it loads a "finetune" of a known architecture.
  if (architecture.empty()) {
    if (!type.empty() && type != "model")
      return std::format("its type is \"{}\". Give the path of a model.", type);
    return "the architecture (general.architecture) is missing. Convert the original model with "
           "convert_hf_to_gguf.py of llama.cpp.";
  }
  if (knows_architecture(architecture)) return "";
  const std::string unknown = std::format("unknown model architecture: '{}'", architecture);
  if (std::ranges::contains(kImageModels, std::string_view(architecture)) ||
      has_tensor(index, "double_blocks.") || has_tensor(index, "diffusion_model.")) {
    return std::format(
        "{}. It is an image or video model, which llama.cpp does not run. Give the "
        "path of a language model.",
        unknown);
  }
  return std::format(
      "{}. This llama.cpp ({}) does not know it: the model is newer or of another "
      "program. Update llama.cpp, or choose another model. Downloading it again "
      "does not help.",
      unknown, library_versions().llama);
}

}  // namespace

bool is_importance_matrix(const GgufIndex& index) {
  return text_value(index, "general.type") == "imatrix" ||
         text_value(index, "general.architecture") == "imatrix";
}

std::string not_a_model(const GgufIndex& index) {
  const std::string why = reason(index);
  if (why.empty()) return "";
  // An unknown architecture is a model, but not for this library.
  const bool is_unknown = why.starts_with("unknown");
  return std::format("{}: {}{}", index.files().empty() ? "" : index.files().front().path,
                     is_unknown ? "" : "not a model: ", why);
}

}  // namespace tt
