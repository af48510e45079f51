// Experts of 8 and 4 bits into the packed layout, on the calling thread.
#pragma once

#include <cstdint>

#include "pack_rows.h"
#include "quantise.h"

namespace fiddler {

// Packs w1, w3 [intermediate, hidden] and w2 [hidden, intermediate], all of shape.format, which is int8 or int4, into
// shape.nbytes() bytes at out. The matrices are only read.
void pack_quantised(const ExpertShape& shape, const QuantisedMatrix& w1, const QuantisedMatrix& w3,
                    const QuantisedMatrix& w2, std::uint8_t* out);

// Quantises rows [first, first + count) of a matrix, bf16, and packs them, sixteen at a time: as pack_rows does for
// bf16, with a little scratch instead of a quantised matrix.
WeightFault quantise_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, std::size_t first,
                          std::size_t count, const std::uint16_t* rows, std::uint8_t* out);

}  // namespace fiddler
