#include "cli/demo/demo_stage.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/units.h"

extern char** environ;

namespace lmemo::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string padded(std::string text, size_t columns, bool is_right) {
  size_t width = 0;  // Of code points: the words hold "×".
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  const std::string room(columns > width ? columns - width : 0, ' ');
  return is_right ? room + text : text + room;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> ended;
  for (const std::string& word : words) ended.push_back(const_cast<char*>(word.c_str()));
  ended.push_back(nullptr);
  return ended;
}

// A process that is ended, with kill -9, when nobody waits for it any longer.
class Child {
 public:
  // Its temporary files go to `directory`, and what it says to output and errors there.
  static Result<Child> start(const std::vector<std::string>& words, const std::filesystem::path& directory) {
    std::vector<std::string> variables = {"TMPDIR=" + directory.string()};
    for (char** variable = environ; *variable; ++variable)
      if (!std::string_view(*variable).starts_with("TMPDIR=")) variables.emplace_back(*variable);
    const std::vector<char*> arguments = pointers(words), environment = pointers(variables);
    const std::string output = directory / "output", errors = directory / "errors";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    Child child;
    const int error =
        posix_spawnp(&child.process_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return Error{ErrorCode::io_error, "cannot run " + words[0] + ": " + std::strerror(error)};
    return child;
  }
  ~Child() { kill_now(); }
  Child(Child&& other) noexcept : process_(std::exchange(other.process_, 0)), status_(other.status_) {}
  Child& operator=(Child&&) = delete;

  bool has_ended() {
    if (process_ != 0 && waitpid(process_, &status_, WNOHANG) == process_) process_ = 0;
    return process_ == 0;
  }
  void kill_now() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {}
    process_ = 0;
  }
  bool ended_well() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

 private:
  Child() = default;
  pid_t process_ = 0;  // 0: it has ended.
  int status_ = 0;
};

}  // namespace

DemoStage::DemoStage(CommandContext& context, std::filesystem::path directory)
    : context_(context), directory_(std::move(directory)) {
  std::error_code ignored;
  std::filesystem::create_directory(scratch_directory(), ignored);
}
DemoStage::~DemoStage() {
  std::error_code ignored;
  std::filesystem::remove_all(scratch_directory(), ignored);
}

void DemoStage::say(const std::string& text) {
  if (!context_.console.is_json && !context_.console.is_quiet) context_.console.out(text + "\n");
}

void DemoStage::heading(const std::string& title, const std::string& words) {
  say("\n" + context_.console.styled(Style::bold, title) + "  " + words);
}

void DemoStage::command(const std::string& words) {
  say(context_.console.styled(Style::dim, "  $ lmemo " + words));
}

void DemoStage::line(const std::string& name, const std::string& what, double seconds,
                     const std::string& remark) {
  say("  " + padded(name, 9, false) + padded(what, 34, false) + padded(format_seconds(seconds), 8, true) +
      (remark.empty() ? "" : "   " + remark));
}

Status DemoStage::check_interrupted() const {
  if (context_.was_interrupted()) return Error{ErrorCode::interrupted, "in the middle of the demo"};
  return {};
}

// The demo's own store and settings: nothing of the user's is read or changed.
std::vector<std::string> DemoStage::complete(std::vector<std::string> words) const {
  words.insert(words.end(),
               {"--json", "--store", place("store").string(), "--config", place("lmemo.toml").string()});
  return words;
}

Result<nlohmann::json> DemoStage::run(std::vector<std::string> words) {
  std::string output, errors;
  CliEnvironment environment = context_.environment;
  environment.write_output = [&output](std::string_view text) { output += text; };
  environment.write_error = [&errors](std::string_view text) { errors += text; };
  environment.input_is_terminal = environment.output_is_terminal = environment.error_is_terminal = false;
  environment.working_directory = directory_;
  const std::string told = joined(words);
  const int exit_code = run_cli(complete(std::move(words)), environment);
  LMEMO_TRY(check_interrupted());
  nlohmann::json answer = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (exit_code != kExitFine || !answer.is_object())
    return Error{ErrorCode::io_error,
                 "lmemo " + told + " ended with " + std::to_string(exit_code) + ": " + errors};
  return answer;
}

Result<bool> DemoStage::run_and_kill(std::vector<std::string> words, const std::function<bool()>& is_time) {
  std::vector<std::string> program = context_.environment.program;
  words = complete(std::move(words));
  program.insert(program.end(), words.begin(), words.end());
  LMEMO_ASSIGN(Child child, Child::start(program, scratch_directory()));
  while (!child.has_ended()) {
    LMEMO_TRY(check_interrupted());
    if (is_time()) {
      child.kill_now();
      return !child.ended_well();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (child.ended_well()) return false;
  return Error{ErrorCode::io_error,
               joined(program) + " failed: " + content_of(scratch_directory() / "errors")};
}

Result<std::string> DemoStage::run_program(const std::vector<std::string>& words) {
  LMEMO_ASSIGN(Child child, Child::start(words, scratch_directory()));
  while (!child.has_ended()) {
    LMEMO_TRY(check_interrupted());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!child.ended_well())
    return Error{ErrorCode::io_error,
                 joined(words) + " failed: " + content_of(scratch_directory() / "errors")};
  return content_of(scratch_directory() / "output");
}

}  // namespace lmemo::cli
