#include "lmemo/forward.h"

namespace lmemo {

Result<Key> forward_key(ForwardRequest request) {
  std::vector<Field> fields = std::move(request.view);
  fields.reserve(fields.size() + 4);
  fields.push_back({"op", FieldValue(std::move(request.op))});
  fields.push_back({"prompt", std::move(request.prompt)});
  fields.push_back({"top_k", std::move(request.top_k)});
  if (request.uses_float16) fields.push_back({"float16", true});
  return Key::of(kForwardKind, std::move(fields));
}

}  // namespace lmemo
