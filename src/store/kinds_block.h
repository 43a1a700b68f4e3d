// The names of the kinds in a segment: u16 count, then each as u8 length and bytes, zeros to a multiple of 8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/format.h"

namespace lmemo {

std::string build_kinds_block(const std::vector<std::string>& kinds);
std::optional<std::vector<std::string>> parse_kinds_block(Bytes block);

// The number of `kind` in `kinds`, which grows if it is new.
uint16_t number_of_kind(std::vector<std::string>& kinds, std::string_view kind);

}  // namespace lmemo
