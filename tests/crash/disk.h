// File systems made for one test: a small one that can fill up, and a folder that turns read-only. Both need mounts of our own,
// which root has, and others where the system lets them have a user namespace; OwnMounts says whether. They are seen by this
// process and its children only, and end with them.
#ifndef WEFT_TESTS_CRASH_DISK_H_
#define WEFT_TESTS_CRASH_DISK_H_

#include <string>

namespace weft {

// Enters a mount namespace of our own, once. REQUIRES: one thread.
bool OwnMounts();

// A tmpfs mounted on the folder `path`. REQUIRES: OwnMounts().
class SmallDisk {
 public:
  SmallDisk(const std::string& path, int megabytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  // Bytes that are free.
  static int64_t Free(const std::string& path);

 private:
  std::string path_;
};

// From here on the folder `path` opens read-only (EROFS), while files that are open stay as they are: what a disk does after an
// error. REQUIRES: OwnMounts().
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(const std::string& path);
  ~ReadOnlyFolder();
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

 private:
  std::string path_;
};

}  // namespace weft

#endif  // WEFT_TESTS_CRASH_DISK_H_
