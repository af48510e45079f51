#include "quantise_impl.h"

namespace fiddler {

const Quantiser kQuantiseAvx512 = {&int8_rows, &int4_rows};

}  // namespace fiddler
