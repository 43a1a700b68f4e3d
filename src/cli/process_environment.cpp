#include "cli/process_environment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/home_directory.h"

namespace lmemo {
namespace {

std::atomic<int> first_output_error = 0;

void note_output_error() {
  int none = 0;
  first_output_error.compare_exchange_strong(none, errno);
}

// A standard stream that is closed would be the number of the next file that is opened, and notes would go into it. What
// takes its place fails in the same way: output that cannot be written is still an error.
void hold_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int terminal_columns() {
  winsize size{};
  for (const int stream : {STDERR_FILENO, STDOUT_FILENO})
    if (ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// Waits in short steps: a Ctrl-C that arrives just before the wait would not end it.
std::optional<std::string> ask_terminal(std::string_view question, const std::function<bool()>& stop) {
  constexpr int kStepMilliseconds = 50;
  std::fwrite(question.data(), 1, question.size(), stderr);
  std::fflush(stderr);
  std::string answer;
  while (!stop || !stop()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kStepMilliseconds) <= 0) continue;
    char c = 0;
    const ssize_t count = read(STDIN_FILENO, &c, 1);
    if (count == 0 || (count < 0 && errno != EINTR)) return std::nullopt;
    if (count < 0) continue;
    if (c == '\n') return answer;
    answer += c;
  }
  return std::nullopt;
}

Result<std::string> read_standard_input() {
  std::string text;
  char block[65536];
  while (true) {
    const ssize_t count = read(STDIN_FILENO, block, sizeof block);
    if (count == 0) return text;
    if (count > 0) {
      text.append(block, static_cast<size_t>(count));
    } else if (errno == EINTR) {
      return Error{ErrorCode::interrupted, "interrupted while reading standard input"};
    } else {
      return Error{ErrorCode::io_error, std::string("cannot read standard input: ") + std::strerror(errno)};
    }
  }
}

Error become(const std::vector<std::string>& words,
             const std::vector<std::pair<std::string, std::string>>& variables) {
  std::fflush(stdout);
  std::fflush(stderr);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // What is ignored stays ignored in the new program, which did not ask for it.
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  std::signal(SIGPIPE, before);
  return {ErrorCode::io_error, "cannot run " + words[0] + ": " + std::strerror(error)};
}

}  // namespace

CliEnvironment process_environment() {
  hold_closed_streams();
  CliEnvironment environment;
  environment.write_output = [](std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_output_error();
  };
  environment.write_error = [](std::string_view text) {
    // Keeps both in order where they go to the same place.
    if (std::fflush(stdout) != 0) note_output_error();
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  environment.input_is_terminal = isatty(STDIN_FILENO) == 1;
  environment.output_is_terminal = isatty(STDOUT_FILENO) == 1;
  environment.error_is_terminal = isatty(STDERR_FILENO) == 1;
  environment.terminal_columns = terminal_columns();
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") {
      const auto home = home_directory();
      return home ? std::optional(home->string()) : std::nullopt;
    }
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  environment.ask = ask_terminal;
  environment.read_input = read_standard_input;
  environment.execute = become;
  std::error_code ignored;
  environment.working_directory = std::filesystem::current_path(ignored);
  return environment;
}

int finish_output() {
  if (std::fflush(stdout) != 0) note_output_error();
  return first_output_error == EPIPE ? 0 : first_output_error.load();
}

std::filesystem::path find_shipped_examples(const std::filesystem::path& start) {
  std::error_code ignored;
  for (std::filesystem::path directory = start;; directory = directory.parent_path()) {
    for (const char* place : {"share/lmemo", "examples"})
      if (std::filesystem::is_directory(directory / place / "corpus", ignored)) return directory / place;
    if (directory.empty() || directory == directory.parent_path()) return {};
  }
}

}  // namespace lmemo
