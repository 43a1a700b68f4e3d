// Bytes as hexadecimal text and back.
#pragma once

#include <optional>
#include <string>

#include "lmemo/bytes.h"

namespace lmemo {

std::string to_hex(Bytes bytes);
std::string to_hex(uint64_t value);  // Always 16 digits.
std::optional<std::string> from_hex(std::string_view hex);

}  // namespace lmemo
