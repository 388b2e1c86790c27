// The components of the ops of the generated models. Architectures.* checks those of all
// architectures.
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/label_check.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

TEST(OpLabels, OfGeneratedModelsMatchPatterns) {
  for (const modelgen::NamedShape& shape : modelgen::named_shapes()) {
    if (shape.name == "tinyllama-1.1b") continue;  // same kinds as `small`, but large
    SCOPED_TRACE(std::string(shape.name));
    TracedModel traced(two_layer_model(std::string(shape.name)));
    const auto run = traced.run(greedy_tokens(5, 2));
    const SessionReader reader = run.reader();
    for (const TemplateId id : reader.template_ids().value())
      EXPECT_GT(expect_labels(**reader.graph(id), traced.engine().facts().n_experts > 0), 10);
  }
}

}  // namespace
}  // namespace tt::test
