// A program of tests/*/programs as a child: what it says comes through a pipe, and it can be killed.
//
//   ChildProcess writer(LMEMO_TEST_PROGRAMS_DIR "/mixed_writer", {directory, "0"});
//   std::string said = writer.read_available();
//   writer.kill();
//   said += writer.read_to_end();
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

namespace lmemo::test {

class ChildProcess {
 public:
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments) {
    int ends[2], input_ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0 || ::pipe2(input_ends, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe2");
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      ::dup2(input_ends[0], STDIN_FILENO);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(program.c_str(), words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    ::close(input_ends[0]);
    output_ = ends[0];
    input_ = input_ends[1];
  }
  ~ChildProcess() {
    if (is_running_) kill();
    end_input();
    ::close(output_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int output() const { return output_; }

  // What it has said so far and nobody has read; empty if nothing came within wait_ms.
  std::string read_available(int wait_ms = 0) {
    pollfd waiting{output_, POLLIN, 0};
    if (::poll(&waiting, 1, wait_ms) <= 0) return {};
    return read_once();
  }
  // Until it has closed its end: after wait() or kill() that is everything it ever said.
  std::string read_to_end() {
    std::string all;
    for (std::string piece = read_once(); !piece.empty(); piece = read_once()) all += piece;
    return all;
  }

  // Tells it that its standard input is over.
  void end_input() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  void signal(int number) { ::kill(pid_, number); }
  // The exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    is_running_ = false;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string read_once() {
    char buffer[1 << 16];
    ssize_t count;
    do count = ::read(output_, buffer, sizeof buffer);
    while (count < 0 && errno == EINTR);
    return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : std::string();
  }

  pid_t pid_ = -1;
  int output_ = -1;
  int input_ = -1;
  bool is_running_ = true;
};

}  // namespace lmemo::test
