// The forward face: results of scoring calls, each computed once.
//
//   LMEMO_ASSIGN(const Key key, forward_key({.op = "next_token_dist", .view = {{"view_id", "base"}}, .prompt = text, .top_k = 256}));
//
// The cache in memory holds Python objects and lives in python/src/forward_*; docs/forward.md is the page for users.
#pragma once

#include <string>
#include <vector>

#include "lmemo/key.h"
#include "lmemo/result.h"

namespace lmemo {

inline constexpr const char* kForwardKind = "forward";

struct ForwardRequest {
  std::string op;
  // Whose answer it is: view_id, and for a view that carries its model also model, revision, adapter, dtype, weights, …
  std::vector<Field> view;
  FieldValue prompt;  // The whole of it.
  FieldValue top_k;
  bool uses_float16 = false;  // Arrays were rounded to half precision: another identity.
};

// Everything that changes the result is in the key. Refuses a view that names a field of the call.
Result<Key> forward_key(ForwardRequest request);

}  // namespace lmemo
