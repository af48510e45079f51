// The part of the extension module that packs and quantises.
#pragma once

#include <nanobind/nanobind.h>

namespace fiddler {

void bind_packing(nanobind::module_& m);

}  // namespace fiddler
