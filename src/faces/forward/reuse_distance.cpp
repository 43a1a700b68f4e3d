#include "faces/forward/reuse_distance.h"

namespace lmemo {
namespace {

// Sums over a prefix, and changes of one element, in logarithmic time.
class FenwickTree {
 public:
  explicit FenwickTree(size_t size) : sums_(size + 1) {}
  void add(size_t place, int32_t amount) {
    for (++place; place < sums_.size(); place += place & (~place + 1))
      sums_[place] += static_cast<uint32_t>(amount);
  }
  // Of the elements before `place`.
  uint32_t sum_before(size_t place) const {
    uint32_t sum = 0;
    for (; place > 0; place -= place & (~place + 1)) sum += sums_[place];
    return sum;
  }

 private:
  std::vector<uint32_t> sums_;
};

}  // namespace

// A mark stands at the last lookup of every call. The marks after a call's own are the different calls since then.
std::vector<uint64_t> hits_by_cache_size(const std::vector<uint32_t>& calls, uint32_t call_count) {
  constexpr uint64_t kNever = UINT64_MAX;
  std::vector<uint64_t> hits(call_count);
  std::vector<uint64_t> last(call_count, kNever);
  FenwickTree marks(calls.size());
  uint32_t marked = 0;
  for (size_t now = 0; now < calls.size(); ++now) {
    uint64_t& before = last[calls[now]];
    if (before != kNever) {
      ++hits[marked - marks.sum_before(before + 1)];
      marks.add(before, -1);
    } else {
      ++marked;
    }
    marks.add(now, 1);
    before = now;
  }
  return hits;
}

}  // namespace lmemo
