// Reads TensorBoard's event files back, strictly and without a line of the writer: both checksums of every record bit by bit,
// and the fields that events are made of. A reader of tests: it throws std::runtime_error where a file is not as it must be.
#ifndef WEFT_TESTS_TRAIN_EVENT_READER_H_
#define WEFT_TESTS_TRAIN_EVENT_READER_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/temporary_folder.h"

namespace weft {

struct EventHistogram {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, buckets;
};

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  bool session_start = false;
  std::map<std::string, float> scalars;
  std::map<std::string, EventHistogram> histograms;
};

// One bit after the other (Koopman's description of CRC-32C: all ones in, all ones out, reflected).
inline uint32_t SlowMaskedCrc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool out = ((crc ^ static_cast<uint32_t>(static_cast<unsigned char>(c) >> bit)) & 1) != 0;
      crc >>= 1;
      if (out) crc ^= 0x82f63b78;
    }
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

class EventParser {
 public:
  explicit EventParser(std::string bytes) : bytes_(std::move(bytes)) {}
  bool done() const { return at_ == bytes_.size(); }
  std::string Take(uint64_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("cut off");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  template <class T>
  T Raw() {
    T value;
    std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = Raw<unsigned char>();
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
      if (shift > 56) throw std::runtime_error("a varint of more than 64 bits");
    }
  }
  std::string Bytes() { return Take(Varint()); }
  std::vector<double> Doubles() {
    EventParser packed(Bytes());
    std::vector<double> values;
    while (!packed.done()) values.push_back(packed.Raw<double>());
    return values;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

inline EventHistogram ParseHistogram(const std::string& bytes) {
  EventHistogram h;
  for (EventParser p(bytes); !p.done();) {
    switch (p.Varint()) {  // field << 3 | wire type
      case 1 << 3 | 1:
        h.min = p.Raw<double>();
        break;
      case 2 << 3 | 1:
        h.max = p.Raw<double>();
        break;
      case 3 << 3 | 1:
        h.num = p.Raw<double>();
        break;
      case 4 << 3 | 1:
        h.sum = p.Raw<double>();
        break;
      case 5 << 3 | 1:
        h.sum_squares = p.Raw<double>();
        break;
      case 6 << 3 | 2:
        h.limits = p.Doubles();
        break;
      case 7 << 3 | 2:
        h.buckets = p.Doubles();
        break;
      default:
        throw std::runtime_error("unknown field of a histogram");
    }
  }
  return h;
}

inline void ParseSummary(const std::string& bytes, Event* event) {
  for (EventParser p(bytes); !p.done();) {
    if (p.Varint() != (1 << 3 | 2)) throw std::runtime_error("unknown field of a summary");
    std::string tag;
    for (EventParser v(p.Bytes()); !v.done();) {
      switch (v.Varint()) {
        case 1 << 3 | 2:
          tag = v.Bytes();
          break;
        case 2 << 3 | 5:
          event->scalars[tag] = v.Raw<float>();
          break;
        case 5 << 3 | 2:
          event->histograms[tag] = ParseHistogram(v.Bytes());
          break;
        default:
          throw std::runtime_error("unknown field of a value");
      }
    }
  }
}

inline Event ParseEvent(const std::string& bytes) {
  Event event;
  for (EventParser p(bytes); !p.done();) {
    switch (p.Varint()) {
      case 1 << 3 | 1:
        event.wall_time = p.Raw<double>();
        break;
      case 2 << 3 | 0:
        event.step = static_cast<int64_t>(p.Varint());
        break;
      case 3 << 3 | 2:
        event.file_version = p.Bytes();
        break;
      case 5 << 3 | 2:
        ParseSummary(p.Bytes(), &event);
        break;
      case 7 << 3 | 2:
        event.session_start = p.Bytes() == std::string("\x08\x01", 2);
        break;
      default:
        throw std::runtime_error("unknown field of an event");
    }
  }
  return event;
}

inline std::vector<Event> ReadEventFile(const std::string& path) {
  std::vector<Event> events;
  for (EventParser p(BytesOf(path)); !p.done();) {
    const std::string head = p.Take(8);
    if (p.Raw<uint32_t>() != SlowMaskedCrc(head)) throw std::runtime_error("checksum of a length");
    const std::string data = p.Take(EventParser(head).Raw<uint64_t>());
    if (p.Raw<uint32_t>() != SlowMaskedCrc(data)) throw std::runtime_error("checksum of a record");
    events.push_back(ParseEvent(data));
  }
  return events;
}

// All events of a folder's files, in the order of their names; each file begins with its version.
inline std::vector<Event> ReadEvents(const std::string& folder) {
  std::vector<Event> events;
  for (const std::string& name : NamesIn(folder)) {
    const std::vector<Event> more = ReadEventFile(folder + "/" + name);
    if (more.empty() || more[0].file_version != "brain.Event:2") throw std::runtime_error(name + " has no version");
    events.insert(events.end(), more.begin(), more.end());
  }
  return events;
}

// Steps of the events with scalars.
inline std::vector<int64_t> ScalarSteps(const std::vector<Event>& events) {
  std::vector<int64_t> steps;
  for (const Event& event : events) {
    if (!event.scalars.empty()) steps.push_back(event.step);
  }
  return steps;
}

}  // namespace weft

#endif  // WEFT_TESTS_TRAIN_EVENT_READER_H_
