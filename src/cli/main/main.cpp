// The stand-alone program: an ordinary process around run_cli().
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/process_environment.h"
#include "lmemo/version.h"

namespace {

volatile std::sig_atomic_t was_interrupted = 0;

void note_interruption(int) { was_interrupted = 1; }

void handle_signals() {
  struct sigaction action{};
  action.sa_handler = note_interruption;
  sigemptyset(&action.sa_mask);
  // The second Ctrl-C ends the program at once. No SA_RESTART: a question at the terminal is interrupted as well.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (const int number : {SIGINT, SIGTERM}) {  // Schedulers say SIGTERM, and wait a while for the end.
    struct sigaction inherited{};
    sigaction(number, nullptr, &inherited);
    // A shell starts background jobs with Ctrl-C ignored, and means it.
    if (inherited.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
    sigaddset(&interrupts, number);
  }
  sigprocmask(SIG_UNBLOCK, &interrupts, nullptr);
  // `lmemo show | head` must not end a running command in its middle; the writes fail instead.
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
  handle_signals();
  lmemo::CliEnvironment environment = lmemo::process_environment();
  environment.interrupted = [] { return was_interrupted != 0; };
  environment.version = lmemo::kVersion;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  environment.shipped_examples = lmemo::find_shipped_examples(program.parent_path());
  environment.program = {program.string()};
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int exit_code = lmemo::run_cli(arguments, environment);

  // A full disk behind `lmemo show > file` must not pass for success.
  const int output_error = lmemo::finish_output();
  if (output_error == 0) return exit_code;
  std::fprintf(stderr, "error: io_error: cannot write to standard output: %s\n", std::strerror(output_error));
  return exit_code == lmemo::kExitFine ? static_cast<int>(lmemo::kExitFailed) : exit_code;
}
