#include "pack_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "pack_quantised.h"

namespace fiddler {
namespace {

// Reads until `size` bytes are there, the file ends, or the system refuses. Returns whether all are there.
bool read_at(int handle, std::uint64_t position, std::uint8_t* to, std::size_t size, FileResult& result) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(handle, to + done, size - done, static_cast<off_t>(position + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count < 0) result.error = errno;
      break;
    }
    done += static_cast<std::size_t>(count);
    result.bytes += static_cast<std::size_t>(count);
  }
  return done == size;
}

}  // namespace

FileResult pack_file_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, const FileRows& rows,
                          std::uint16_t* scratch, std::size_t scratch_rows, std::uint8_t* out) {
  const auto pack = shape.format == WeightFormat::kBf16 ? &pack_rows : &quantise_rows;
  const std::size_t row_bytes = width_of(shape, matrix) * sizeof(std::uint16_t);
  const std::size_t step = scratch_rows / kTileRows * kTileRows, end = rows.first + rows.count;
  FileResult result;
  for (std::size_t row = rows.first; row < end; row += step) {
    const std::size_t count = std::min(step, end - row);
    const std::uint64_t position = rows.position + (row - rows.first) * row_bytes;
    auto* bytes = reinterpret_cast<std::uint8_t*>(scratch);
    if (!read_at(rows.handle, position, bytes, count * row_bytes, result)) break;
    result.fault = pack(isa, shape, matrix, row, count, scratch, out);
    if (result.fault) break;
  }
  return result;
}

}  // namespace fiddler
