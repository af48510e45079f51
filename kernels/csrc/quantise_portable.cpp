#include "quantise_impl.h"

namespace fiddler {

const Quantiser kQuantisePortable = {&int8_rows, &int4_rows};

}  // namespace fiddler
