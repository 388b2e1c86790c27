#pragma once

#include <string_view>

#include "tracer/modelgen/detail/plan_builder.h"

// Architectures of the named shapes. Each function writes the metadata and tensors that
// libllama requires, layers in file order.
namespace tt::modelgen::detail {

void build_llama(PlanBuilder& plan);  // dense, or a mixture when dims.experts > 0
void build_qwen3_moe(PlanBuilder& plan);
void build_gpt_oss(PlanBuilder& plan);
void build_deepseek2(PlanBuilder& plan);
void build_mamba(PlanBuilder& plan);
void build_t5(PlanBuilder& plan);
void build_bert(PlanBuilder& plan);
void build_rwkv7(PlanBuilder& plan);

}  // namespace tt::modelgen::detail
