#include "tests/crash/disk.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

bool Put(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file.good();
}

bool Enter() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!Put("/proc/self/setgroups", "deny") || !Put("/proc/self/uid_map", absl::StrCat("0 ", user, " 1")) ||
        !Put("/proc/self/gid_map", absl::StrCat("0 ", group, " 1"))) {
      return false;
    }
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

void Unmount(const std::string& path) {
  EXPECT_EQ(::umount2(path.c_str(), MNT_DETACH), 0) << path << ": " << std::strerror(errno);
}

}  // namespace

bool OwnMounts() {
  static const bool own = Enter();
  return own;
}

SmallDisk::SmallDisk(const std::string& path, int megabytes) : path_(path) {
  EXPECT_EQ(::mount("weft-test", path.c_str(), "tmpfs", 0, absl::StrCat("size=", megabytes, "m").c_str()), 0)
      << path << ": " << std::strerror(errno);
}

SmallDisk::~SmallDisk() { Unmount(path_); }

int64_t SmallDisk::Free(const std::string& path) {
  struct statvfs info {};
  EXPECT_EQ(::statvfs(path.c_str(), &info), 0);
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

ReadOnlyFolder::ReadOnlyFolder(const std::string& path) : path_(path) {
  EXPECT_EQ(::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0) << path << ": " << std::strerror(errno);
  EXPECT_EQ(::mount("none", path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0) << std::strerror(errno);
}

ReadOnlyFolder::~ReadOnlyFolder() { Unmount(path_); }

}  // namespace weft
