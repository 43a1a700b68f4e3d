// What differs between a request and the entry nearest to it.
#pragma once

#include "lmemo/store.h"

namespace lmemo {

std::vector<FieldDifference> differences(const Key& asked, const Key& stored);

}  // namespace lmemo
