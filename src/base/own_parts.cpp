#include "base/own_parts.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace lmemo {
namespace {

// As in linux/fs.h since Linux 6.7 (PAGEMAP_SCAN), which older headers lack.
struct PageRegion {
  uint64_t start, end, categories;
};
struct PageScan {
  uint64_t size = sizeof(PageScan), flags = 0, start = 0, end = 0, walk_end = 0, regions = 0,
           region_count = 0, max_pages = 0, inverted = 0, all_of = 0, any_of = 0, returned = 0;
};
constexpr uint64_t kPageIsOfFile = 4, kPageIsPresent = 8, kPageIsSwapped = 16;
constexpr unsigned long kScanPages = _IOWR('f', 16, PageScan);

// Which pages of a private mapping of a file were written to.
class WrittenPages {
 public:
  explicit WrittenPages(size_t page_bytes) : page_bytes_(page_bytes) {}

  // True if it cannot be told.
  bool are_among(const std::byte* first, const std::byte* end) {
    if (!is_open_) open();
    if (can_scan_)
      if (const std::optional<bool> found = scan(first, end)) return *found;
    std::array<uint64_t, 512> pages;
    auto page = reinterpret_cast<uintptr_t>(first) / page_bytes_;
    const auto end_page = reinterpret_cast<uintptr_t>(end) / page_bytes_;
    while (page < end_page) {
      const size_t count = std::min<size_t>(pages.size(), end_page - page);
      const ssize_t got = ::pread(descriptor_, pages.data(), count * sizeof(uint64_t),
                                  static_cast<off_t>(page * sizeof(uint64_t)));
      if (got != static_cast<ssize_t>(count * sizeof(uint64_t))) return true;
      if (std::any_of(pages.begin(), pages.begin() + static_cast<ptrdiff_t>(count), is_own)) return true;
      page += count;
    }
    return false;
  }
  // The file opened before fork() tells about the parent.
  void start_over() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    is_open_ = false;
  }

 private:
  // One question for any number of pages: 16 MB, mapped 2 MB at a time, take 1.2 µs, and 11.5 by reading a number for each page.
  // nullopt on an older kernel.
  std::optional<bool> scan(const std::byte* first, const std::byte* end) {
    PageRegion region;
    PageScan request;
    request.start = reinterpret_cast<uintptr_t>(first);
    request.end = reinterpret_cast<uintptr_t>(end);
    request.regions = reinterpret_cast<uintptr_t>(&region);
    request.region_count = request.max_pages = 1;
    request.inverted = request.all_of = kPageIsOfFile;
    request.any_of = request.returned = kPageIsPresent | kPageIsSwapped;
    const int found = ::ioctl(descriptor_, kScanPages, &request);
    if (found > 0) return true;
    if (found == 0 && request.walk_end == request.end) return false;
    can_scan_ = found == 0;
    return std::nullopt;
  }
  // In memory and not the file's, or swapped out.
  static bool is_own(uint64_t page) {
    constexpr uint64_t kIsPresent = uint64_t{1} << 63, kIsSwapped = uint64_t{1} << 62,
                       kIsOfFile = uint64_t{1} << 61;
    return (page & kIsSwapped) != 0 || (page & (kIsPresent | kIsOfFile)) == kIsPresent;
  }
  void open() {
    is_open_ = can_scan_ = true;
    descriptor_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    // Believed only if it tells that this page is our own.
    const auto page = std::make_unique<std::byte[]>(2 * page_bytes_);
    std::byte* const whole =
        page.get() + (page_bytes_ - reinterpret_cast<uintptr_t>(page.get()) % page_bytes_) % page_bytes_;
    std::memset(page.get(), 1, 2 * page_bytes_);
    if (descriptor_ >= 0 && !are_among(whole, whole + page_bytes_)) ::close(std::exchange(descriptor_, -1));
  }

  const size_t page_bytes_;
  bool is_open_ = false, can_scan_ = false;
  int descriptor_ = -1;
};

class HeldParts {
 public:
  static HeldParts& instance() {
    static HeldParts* const all = [] {
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().written_.start_over(), instance().mutex_.unlock(); });
      return new HeldParts;  // Never destroyed: a part may be given back late.
    }();
    return *all;
  }

  OwnPart take(std::byte* part, Bytes file_bytes) {
    if (file_bytes.empty()) return {};
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = held_.lower_bound(part);
    if (next != held_.end() && next->first < part + file_bytes.size()) return {};
    if (next != held_.begin() && end_of(std::prev(next)) > part) return {};
    if (spare_.empty()) {
      held_.emplace_hint(next, part, file_bytes);
    } else {
      spare_.key() = part;
      spare_.mapped() = file_bytes;
      held_.insert(next, std::move(spare_));
    }
    return OwnPart(part);
  }

  void give_back(std::byte* part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto held = held_.find(part);
    const Bytes file_bytes = held->second;
    std::byte* const end = part + file_bytes.size();
    std::byte *first_page = page_of(part), *end_page = page_of(end + page_bytes_ - 1);
    if (held != held_.begin() && end_of(std::prev(held)) > first_page) {
      first_page = std::min(first_page + page_bytes_, end_page);
      put_right(part, std::min(first_page, end), file_bytes, part);
    }
    if (const auto next = std::next(held); next != held_.end() && next->first < end_page) {
      end_page = std::max(end_page - page_bytes_, first_page);
      put_right(std::max(end_page, part), end, file_bytes, part);
    }
    // Locked memory cannot be dropped.
    if (first_page < end_page && written_.are_among(first_page, end_page) &&
        ::madvise(first_page, static_cast<size_t>(end_page - first_page), MADV_DONTNEED) != 0)
      put_right(std::max(first_page, part), std::min(end_page, end), file_bytes, part);
    spare_ = held_.extract(held);
  }

 private:
  using Held = std::map<std::byte*, Bytes>;
  static std::byte* end_of(Held::const_iterator held) { return held->first + held->second.size(); }
  std::byte* page_of(std::byte* address) const {
    return address - reinterpret_cast<uintptr_t>(address) % page_bytes_;
  }
  static void put_right(std::byte* from, std::byte* to, Bytes file_bytes, const std::byte* part) {
    if (from >= to) return;
    const auto length = static_cast<size_t>(to - from);
    const Bytes right = file_bytes.subspan(static_cast<size_t>(from - part), length);
    // A page that nobody wrote to stays the file's.
    if (std::memcmp(from, right.data(), length) != 0) std::memcpy(from, right.data(), length);
  }

  const size_t page_bytes_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  // Guards the rest, and keeps a part from being taken while its neighbour's pages are dropped.
  std::mutex mutex_;
  Held held_;  // What the file has there, by the part's address.
  Held::node_type spare_;
  WrittenPages written_{page_bytes_};
};

}  // namespace

void OwnPart::give_back(std::byte* data) { HeldParts::instance().give_back(data); }

namespace own_parts {
OwnPart take(std::byte* part, Bytes file_bytes) { return HeldParts::instance().take(part, file_bytes); }
void prepare_for_fork() { HeldParts::instance(); }
}  // namespace own_parts

}  // namespace lmemo
