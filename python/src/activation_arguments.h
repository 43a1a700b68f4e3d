// What lmemo.activations passes: dtypes and parts by name, addresses, prompts.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "found_tensors.h"
#include "lmemo/activations.h"

namespace lmemo::python {

constexpr uint64_t kLongCopyBytes = 256 << 10;  // Above this, others may run meanwhile.

// ValueError where there is none of that name.
TensorType type_of(std::string_view name);
ActivationPart part_of(std::string_view name);

inline std::byte* at_address(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

void copy_layers(const FoundTensors& found, std::byte* out, TensorType type, uint64_t row_stride);

// UTF-8; `kept` holds it where Python does not.
std::string_view prompt_bytes(nanobind::handle prompt, std::string& kept);
std::vector<std::string> fields_of_prompts(const nanobind::list& prompts);

}  // namespace lmemo::python
