#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <thread>

#include "measures.h"
#include "peers.h"

namespace lmemo::bench {
namespace {

constexpr double kSeconds = 1.5;  // Of one run.
constexpr double kThrottledBytesPerSecond = 20e6;

// Shared between the processes.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, stop{false};
  std::atomic<uint64_t> finds{0}, written_bytes{0}, reader_cpu_ns{0};
};

template <typename Work>
pid_t start_process(const Work& work) {
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child > 0) return child;
  work();
  ::_exit(0);
}

void wait_until_go(Board& board) {
  ++board.ready;
  while (!board.go) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// One find in a hundred misses, so that the reader also looks for what the writer published.
void read_until_stopped(Board& board, const std::filesystem::path& directory, std::span<const Digest> present,
                        std::span<const Digest> absent, size_t from) {
  StoreOptions options = bench_options(CheckPolicy::first_find);
  options.read_only = true;
  const std::unique_ptr<Store> store = must(open_store(directory, options), "open");
  for (const Digest& digest : present)
    if (!store->find(digest)) fail("a reader lost an entry");
  wait_until_go(board);
  uint64_t finds = 0;
  const double cpu_start = thread_cpu_seconds();
  for (size_t i = from; !board.stop.load(std::memory_order_relaxed);) {
    for (int repeat = 0; repeat < 99; ++repeat, i = (i + 1) % present.size())
      if (!store->find(present[i])) fail("a reader lost an entry");
    if (store->find(absent[i])) fail("a reader found what nobody put");
    finds += 100;
  }
  board.finds += finds;
  board.reader_cpu_ns += static_cast<uint64_t>((thread_cpu_seconds() - cpu_start) * 1e9);
}

void write_until_stopped(Board& board, const std::filesystem::path& directory, const Workload& fresh,
                         double bytes_per_second) {
  const std::unique_ptr<Store> store =
      must(open_store(directory, bench_options(CheckPolicy::every_find)), "open");
  wait_until_go(board);
  const double start = now_seconds();
  uint64_t bytes = 0;
  for (size_t i = 0; !board.stop; i = (i + 1) % fresh.count()) {
    must(store->put(fresh.key(i), fresh.value(i)), "put");
    bytes += fresh.value(i).size();
    if ((i + 1) % kEntriesPerFlush == 0) must(store->flush(), "flush");
    const double ahead = static_cast<double>(bytes) / bytes_per_second - (now_seconds() - start);
    if (ahead > 1e-3) std::this_thread::sleep_for(std::chrono::duration<double>(ahead));
  }
  board.written_bytes += bytes;
}

struct Outcome {
  double finds_per_second, written_bytes_per_second, finds_per_cpu_second;
};

// bytes_per_second 0: no writer.
Outcome run_processes(const Workload& workload, const Workload& fresh, std::span<const Digest> present,
                      std::span<const Digest> absent, const std::filesystem::path& scratch,
                      double bytes_per_second) {
  const std::filesystem::path directory = scratch / "processes";
  LmemoPeer filler(directory, CheckPolicy::first_find);
  filler.fill(workload);
  ::sync();
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  Board& board = *new (memory) Board;
  std::vector<pid_t> children;
  for (size_t reader = 0; reader < 2; ++reader)
    children.push_back(start_process(
        [&] { read_until_stopped(board, directory, present, absent, reader * present.size() / 2); }));
  if (bytes_per_second > 0)
    children.push_back(
        start_process([&] { write_until_stopped(board, directory, fresh, bytes_per_second); }));
  while (board.ready < static_cast<int>(children.size()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double start = now_seconds();
  board.go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  board.stop = true;
  const double seconds = now_seconds() - start;
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) fail("a process of the benchmark failed");
  }
  const Outcome outcome{static_cast<double>(board.finds) / seconds,
                        static_cast<double>(board.written_bytes) / seconds,
                        static_cast<double>(board.finds) / (static_cast<double>(board.reader_cpu_ns) * 1e-9)};
  ::munmap(memory, sizeof(Board));
  filler.remove();
  return outcome;
}

}  // namespace

void measure_processes(const Context& context, const Workload& workload) {
  const Workload fresh("written meanwhile", 20'000, 4001, 20001);
  const std::vector<Digest> present = workload.shuffled(), absent = workload.absent();
  const auto run = [&](double bytes_per_second) {
    return run_processes(workload, fresh, present, absent, context.scratch, bytes_per_second);
  };
  std::vector<double> throttled, throttled_by_cpu, unthrottled, alone_rates, throttled_written,
      unthrottled_written;
  for (int round = 0; round < context.rounds; ++round) {
    const Outcome alone = run(0), slow = run(kThrottledBytesPerSecond), fast = run(1e12);
    alone_rates.push_back(alone.finds_per_second);
    throttled.push_back(slow.finds_per_second / alone.finds_per_second);
    throttled_by_cpu.push_back(slow.finds_per_cpu_second / alone.finds_per_cpu_second);
    unthrottled.push_back(fast.finds_per_second / alone.finds_per_second);
    throttled_written.push_back(slow.written_bytes_per_second);
    unthrottled_written.push_back(fast.written_bytes_per_second);
  }
  const auto beside = [&](const std::vector<double>& written) {
    return "readers alone " + number_text(median(alone_rates) / 1e6, 2) + " M finds/s; writer " +
           number_text(median(written) / 1e6, 0) + " MB/s";
  };
  context.report.add({"two readers beside a writer held to 20 MB/s: of readers alone", workload.name(),
                      beside(throttled_written), 100 * median(throttled), "%", 80});
  context.report.add({"the same, finds per CPU second (what a busy machine takes away is not counted)",
                      workload.name(), "", 100 * median(throttled_by_cpu), "%"});
  context.report.add({"two readers beside an unthrottled writer: of readers alone", workload.name(),
                      beside(unthrottled_written), 100 * median(unthrottled), "%"});
}

}  // namespace lmemo::bench
