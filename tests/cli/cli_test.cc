#include "tests/cli/cli_test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace weft {

pid_t CliTest::Start(const Args& args, const RunSettings& settings) {
  PutBytes(captured_.Path("in"), settings.input);
  const std::string in = settings.stdin_path.empty() ? captured_.Path("in") : settings.stdin_path;
  const std::string err = captured_.Path("err");
  const std::string out = settings.stdout_path.empty() ? captured_.Path("out") : settings.stdout_path;
  std::vector<std::string> words = Join({WEFT_PROGRAM}, args);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child != 0) return child;
  const auto redirect = [](const std::string& path, int flags, int to) {
    const int fd = ::open(path.c_str(), flags, 0666);
    if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  };
  redirect(in, O_RDONLY, STDIN_FILENO);
  redirect(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  if (settings.file_size_limit >= 0) {
    // Ignored, the signal of the limit becomes an error of write().
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{static_cast<rlim_t>(settings.file_size_limit), static_cast<rlim_t>(settings.file_size_limit)};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  }
  // Root passes over modes by a capability, which exec takes from the bounding set. Others have none to drop.
  if (settings.obey_modes && ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0 && ::getuid() == 0) ::_exit(126);
  if (::chdir(folder_.path().c_str()) != 0) ::_exit(126);
  ::execv(WEFT_PROGRAM, argv.data());
  ::_exit(127);
}

Outcome CliTest::Wait(pid_t pid) {
  Outcome outcome;
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = BytesOf(captured_.Path("out"));
  outcome.err = BytesOf(captured_.Path("err"));
  return outcome;
}

bool CliTest::HasEnded(pid_t pid) {
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT), 0);
  return info.si_pid == pid;
}

Outcome CliTest::Train(const std::string& run, const Args& more) {
  return Weft(Join({"train", "job.toml", "--quiet", "--set", "run.dir=" + run}, more));
}

pid_t CliTest::StartEndless(const std::string& run, const Args& more) {
  const Args args = {
      "train",         "job.toml", "--quiet",           "--set", "run.dir=" + run, "--set", "train.steps=1000000000", "--set",
      "valid.every=0", "--set",    "checkpoint.every=0"};
  const pid_t pid = Start(Join(args, more));
  const std::string metrics = run + "/metrics.jsonl";
  for (int i = 0; i < 2000 && Read(metrics).empty(); ++i) ::usleep(5000);
  EXPECT_NE(Read(metrics), "");
  return pid;
}

bool CliTest::Exists(const std::string& name) { return std::filesystem::exists(Path(name)); }

}  // namespace weft
