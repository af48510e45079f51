// From plain weights to 8 and 4 bits. kernels/formats.py describes the formats.
#pragma once

#include "fault.h"
#include "isa.h"
#include "layout.h"
#include "quantiser.h"

namespace fiddler {

// Quantises a matrix on the calling thread, to int8 or int4. After a fault `to` holds nothing of use.
WeightFault quantise(Isa isa, WeightFormat format, const PlainMatrix& from, const QuantisedMatrix& to);

}  // namespace fiddler
