// Rows of a checkpoint's matrix from a file into an expert's block. Reading and packing are one call without
// Python's lock, over which sixteen threads that come back after every piece wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pack_rows.h"

namespace fiddler {

// Rows [first, first + count) of a matrix, as for pack_rows, in an open file: bf16 from byte `position` on.
struct FileRows {
  int handle;
  std::uint64_t position;
  std::size_t first;
  std::size_t count;
};

struct FileResult {
  WeightFault fault;
  int error = 0;          // the system's number of what kept the file from being read
  std::size_t bytes = 0;  // read; fewer than there should be where the file ends early
};

// As pack_rows or, for 8 and 4 bits, quantise_rows. The rows go through `scratch`, as many at a time as fit into
// its `scratch_rows`, whole tiles of them. Ends at the first piece that has a fault or is not whole.
FileResult pack_file_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, const FileRows& rows,
                          std::uint16_t* scratch, std::size_t scratch_rows, std::uint8_t* out);

}  // namespace fiddler
