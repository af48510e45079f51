// Which instruction sets this machine has, which were compiled, and their kernels.
#pragma once

#include <string>
#include <vector>

#include "kernel.h"

namespace fiddler {

// In ascending order; names are the ones of FIDDLER_MAX_ISA.
enum class Isa { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

// The levels that the CPU has, the operating system saves the registers of, and this build contains, ascending.
const std::vector<Isa>& available_isas();

std::string isa_name(Isa isa);

// Throws std::invalid_argument for a name that is not the name of an available level.
Isa isa_from_name(const std::string& name);

const Kernels& kernels_for(Isa isa);

}  // namespace fiddler
