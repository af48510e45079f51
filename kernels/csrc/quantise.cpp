#include "quantise.h"

namespace fiddler {
namespace {

// AVX512_BF16 and AMX have nothing more that quantising could use.
const Quantiser& quantiser_for(Isa isa) {
#if defined(FIDDLER_HAVE_AVX512)
  if (isa >= Isa::kAvx512) return kQuantiseAvx512;
#endif
#if defined(FIDDLER_HAVE_AVX2)
  if (isa >= Isa::kAvx2) return kQuantiseAvx2;
#endif
  static_cast<void>(isa);
  return kQuantisePortable;
}

}  // namespace

WeightFault quantise(Isa isa, WeightFormat format, const PlainMatrix& from, const QuantisedMatrix& to) {
  const Quantiser& quantiser = quantiser_for(isa);
  const bool done = format == WeightFormat::kInt8 ? quantiser.int8(from, to) : quantiser.int4(from, to);
  return done ? WeightFault{} : find_fault(from);
}

}  // namespace fiddler
