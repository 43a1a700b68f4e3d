// How fast the store is, beside what people would use instead, on the same data in one run.
//
//   ./dev bench store                           the quick form, a few minutes
//   build/bench/bench/store_bench --full        with 1,000,000 entries of 4–20 KB: 28 GB of disk, and long
//   build/bench/bench/store_bench --only find,put --rounds 9 --json
//
// Every figure is the median over rounds in which the peers alternate. docs/benchmarks.md has the results.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "support/measures.h"

namespace lmemo::bench {

namespace {

struct Options {
  bool is_full = false, is_json = false;
  int rounds = 5;
  std::set<std::string> only;  // Empty: all.
  std::filesystem::path directory;
};

constexpr char kUsage[] =
    "usage: store_bench [--full] [--json] [--rounds N] [--only find,put,open,compact,processes] [--directory "
    "DIR]\n"
    "Data goes below DIR (default: $TMPDIR, else build/bench-data) and is removed at the end.\n";

[[noreturn]] void misuse(const std::string& what) {
  std::fprintf(stderr, "store_bench: %s\n%s", what.c_str(), kUsage);
  std::exit(2);
}

Options parse(int count, char** words) {
  Options options;
  const char* temporary = std::getenv("TMPDIR");
  options.directory = temporary != nullptr && *temporary != 0 ? temporary : "build/bench-data";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto argument = [&] {
      if (i + 1 == count) misuse(word + " wants a value");
      return std::string(words[++i]);
    };
    if (word == "--full") {
      options.is_full = true;
    } else if (word == "--json") {
      options.is_json = true;
    } else if (word == "--rounds") {
      options.rounds = std::max(1, std::atoi(argument().c_str()));
    } else if (word == "--directory") {
      options.directory = argument();
    } else if (word == "--only") {
      std::string names = argument();
      for (char* name = std::strtok(names.data(), ","); name != nullptr; name = std::strtok(nullptr, ","))
        options.only.insert(name);
    } else if (word == "--help" || word == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else {
      misuse("'" + word + "' is not an option");
    }
  }
  return options;
}

void run(const Options& options, const std::filesystem::path& scratch) {
  Report report(options.is_json);
  const Context context{scratch, options.rounds, options.is_full, report};
  report.begin(describe_machine(scratch));
  const auto wants = [&](const char* name) { return options.only.empty() || options.only.contains(name); };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  if (!context.has_room(4 * kGiB, "everything")) return report.finish();

  const Workload medium("50,000 of 4–20 KB", 50'000, 4000, 20000);
  if (wants("find")) measure_finds(context, medium, true, true, false);
  if (wants("find")) {
    const Workload small("1,000,000 of 200 B", 1'000'000, 200, 200);
    // A million files take minutes to make and to delete.
    if (!options.is_full) report.skip("one file per entry, 1,000,000 of 200 B", "only with --full");
    measure_finds(context, small, options.is_full && context.has_room(8 * kGiB, "1,000,000 files"), false,
                  false);
  }
  if (wants("put")) {
    measure_puts(context, medium, 1.5);
    measure_puts(context, Workload("1,000,000 of 200 B", 1'000'000, 200, 200), 1.5);
    measure_puts(context, Workload("20,000 of 200 B", 20'000, 200, 200),
                 {});  // LMDB's best: its tree is still small.
    measure_puts_of_files(context, Workload("2,000 of 4–20 KB", 2000, 4000, 20000));
  }
  if (wants("open")) measure_opening(context);
  if (wants("compact")) measure_compaction(context, medium);
  if (wants("processes")) measure_processes(context, medium);

  if (!options.is_full) {
    report.skip("1,000,000 of 4–20 KB", "12 GB per peer, only with --full");
  } else if ((wants("find") || wants("put")) && context.has_room(28 * kGiB, "1,000,000 of 4–20 KB")) {
    const Workload huge("1,000,000 of 4–20 KB", 1'000'000, 4000, 20000);
    if (wants("put")) measure_puts(context, huge, 1.5);
    if (wants("find")) measure_finds(context, huge, false, true, true);
    report.skip("one file per entry, 1,000,000 of 4–20 KB",
                "16 GB of files: neither fits the page cache nor an hour");
  }
  report.finish();
}

pid_t worker = 0;

// The data is removed whatever happens to the measuring: it runs in a child, and this process tidies up after it.
int supervise(const Options& options) {
  const std::filesystem::path scratch = options.directory / ("store-bench-" + std::to_string(::getpid()));
  std::error_code error;
  std::filesystem::create_directories(scratch, error);
  if (error) fail("create " + scratch.string() + ": " + error.message());
  worker = ::fork();
  if (worker < 0) fail("fork");
  if (worker == 0) {
    run(options, scratch);
    std::fflush(stdout);
    ::_exit(0);
  }
  const auto pass_on = [](int number) { ::kill(worker, number); };
  ::signal(SIGTERM, pass_on);
  ::signal(SIGHUP, pass_on);
  ::signal(SIGINT, SIG_IGN);  // The terminal tells the child by itself.
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {}
  std::filesystem::remove_all(scratch, error);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "bench: ended by signal %d\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

}  // namespace
}  // namespace lmemo::bench

int main(int count, char** words) { return lmemo::bench::supervise(lmemo::bench::parse(count, words)); }
