// Profile: where a tape's time, arithmetic and memory go, by the name of the op. A tape that was given one (Tape::set_profile)
// measures each op's forward part (from the construction of its Op to its end) and each backward function; a tape without one
// pays a branch an op. Ops need do nothing; Op::Flops and Op::Bytes say what cannot be seen from shapes. Not thread-safe: one
// profile a tape, summed afterwards with Add. Invariant: times and bytes held are exclusive, an op that runs inside another is
// taken off the outer one, so that rows may be added up.
#ifndef WEFT_AUTOGRAD_PROFILE_H_
#define WEFT_AUTOGRAD_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// One direction of all ops of one name.
struct ProfilePass {
  int64_t calls = 0;
  double seconds = 0;  // on the thread of the tape; a kernel that forks counts once, the wait for other threads included
  double flops = 0;    // as declared by Op::Flops, else 0
  // Bytes read and written if each tensor were moved once. Forward: distinct inputs and outputs, views are free. Backward: the
  // inputs, the gradients of the outputs, and twice (read, written) the gradient of each input that needs one. From shapes, or
  // Op::Bytes.
  double bytes = 0;
  // By which the tape's memory grew. Forward: outputs, what is kept for backward, the closure. Backward: gradients beyond those
  // that the pool could reuse. Both of all rows together are what the tape used.
  int64_t held = 0;

  void Add(const ProfilePass& other);
};

struct ProfileRow {
  std::string name;
  ProfilePass forward, backward;
};

// An open measurement: see Profile::Begin.
struct ProfileMark {
  double start = 0;  // seconds
  int64_t held = 0;
  double outer_seconds = 0;  // inside the enclosing measurement, before this one
  int64_t outer_held = 0;
};

class Profile {
 public:
  // In the order of first use.
  absl::Span<const ProfileRow> rows() const { return rows_; }
  // The row of `name`, made at first use. The reference is valid until the next new name.
  ProfileRow& Row(absl::string_view name);
  // Null if there is none.
  const ProfileRow* Find(absl::string_view name) const;
  // Row by row.
  void Add(const Profile& other);
  void Clear() { rows_.clear(); }

  // Begin and End bracket a piece of work; brackets nest. `held` is the memory held at that moment, in bytes; End adds one
  // call, the time and the growth, both without those of brackets inside, to `pass`.
  ProfileMark Begin(int64_t held);
  void End(const ProfileMark& mark, int64_t held, ProfilePass* pass);

 private:
  std::vector<ProfileRow> rows_;
  double inner_seconds_ = 0;  // of brackets closed inside the one that is open
  int64_t inner_held_ = 0;
};

}  // namespace weft

#endif  // WEFT_AUTOGRAD_PROFILE_H_
