// Memory for packed activations and partial results: aligned to cache lines, not initialised.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace fiddler {

constexpr std::size_t kLineBytes = 64;
constexpr std::align_val_t kLine{kLineBytes};

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete(p, kLine); }
};

using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

inline AlignedBytes aligned_bytes(std::size_t size) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(size, kLine)));
}

// Memory that is kept and grows when asked for more; what it held is lost then.
class GrowingBytes {
 public:
  std::byte* at_least(std::size_t size) {
    if (size > size_) {
      bytes_ = aligned_bytes(size);
      size_ = size;
    }
    return bytes_.get();
  }

 private:
  AlignedBytes bytes_;
  std::size_t size_ = 0;
};

}  // namespace fiddler
