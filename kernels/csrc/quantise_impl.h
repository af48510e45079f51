// Both quantisers for both kinds of weights. Unnamed namespace: see kernel.h.
#pragma once

#include "quantise_int4.h"
#include "quantise_int8.h"

namespace fiddler {
namespace {

inline bool int8_rows(const PlainMatrix& from, const QuantisedMatrix& to) {
  return from.bf16 ? quantise_int8<std::uint16_t>(from, to) : quantise_int8<float>(from, to);
}

inline bool int4_rows(const PlainMatrix& from, const QuantisedMatrix& to) {
  return from.bf16 ? quantise_int4<std::uint16_t>(from, to) : quantise_int4<float>(from, to);
}

}  // namespace
}  // namespace fiddler
