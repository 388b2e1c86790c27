// The tensors of a LoRA adapter, by their names in llama.cpp: "blk.0.attn_q.weight.lora_a".
#pragma once

#include <string_view>

namespace tt {

constexpr bool is_adapter_weight(std::string_view name) {
  return name.ends_with(".lora_a") || name.ends_with(".lora_b");
}

}  // namespace tt
