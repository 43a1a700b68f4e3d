#include "activation_arguments.h"

#include <optional>

#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {

TensorType type_of(std::string_view name) {
  const std::optional<TensorType> type = tensor_type_named(name);
  if (!type) throw nb::value_error(("unknown dtype \"" + std::string(name) + "\"").c_str());
  return *type;
}

ActivationPart part_of(std::string_view name) {
  const std::optional<ActivationPart> part = activation_part_named(name);
  if (!part) throw nb::value_error(("unknown part \"" + std::string(name) + "\"").c_str());
  return *part;
}

void copy_layers(const FoundTensors& found, std::byte* out, TensorType type, uint64_t row_stride) {
  Status status;
  {
    const nb::gil_scoped_release released;
    status = found.copy_layers(out, type, row_stride);
  }
  raise_if_failed(status);
}

std::string_view prompt_bytes(nb::handle prompt, std::string& kept) {
  Py_ssize_t length = 0;
  if (PyUnicode_Check(prompt.ptr())) {
    if (const char* text = PyUnicode_AsUTF8AndSize(prompt.ptr(), &length))
      return {text, static_cast<size_t>(length)};
    PyErr_Clear();  // A lone surrogate.
    kept = utf8_of(prompt);
    return kept;
  }
  throw nb::type_error("prompt: expected str");
}

std::vector<std::string> fields_of_prompts(const nb::list& prompts) {
  std::vector<std::string> fields;
  fields.reserve(prompts.size());
  for (const nb::handle prompt : prompts) {
    std::string kept;
    fields.push_back(ActivationKeys::prompt(prompt_bytes(prompt, kept)));
  }
  return fields;
}

}  // namespace lmemo::python
