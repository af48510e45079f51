#include "isa.h"

#include <array>
#include <cstdint>
#include <stdexcept>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FIDDLER_X86 1
#include <cpuid.h>
#endif
#if defined(FIDDLER_X86) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fiddler {
namespace {

constexpr std::array<const char*, 5> kNames = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};

#if defined(FIDDLER_X86)

struct CpuId {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  CpuId(std::uint32_t leaf, std::uint32_t subleaf) {
    if (!__get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx)) eax = ebx = ecx = edx = 0;
  }
};

// The register states that the operating system saves when it switches threads.
std::uint64_t xcr0() {
  std::uint32_t low, high;
  // The instruction's name would need -mxsave; this file is compiled for any CPU.
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

bool bit(std::uint32_t value, int index) { return (value >> index) & 1; }

// Linux gives a process its tile registers only on request.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Each level needs the one before.
Isa best_of_machine() {
  const CpuId one(1, 0);
  if (!bit(one.ecx, 27)) return Isa::kPortable;  // OSXSAVE: XCR0 can be read
  const std::uint64_t saved = xcr0();
  const CpuId seven(7, 0);
  const CpuId seven_one(7, 1);
  const bool ymm = (saved & 0x6) == 0x6;
  if (!(ymm && bit(one.ecx, 12) && bit(one.ecx, 29) && bit(seven.ebx, 5))) return Isa::kPortable;  // FMA, F16C, AVX2
  const bool zmm = (saved & 0xe6) == 0xe6;
  if (!(zmm && bit(seven.ebx, 16) && bit(seven.ebx, 30) && bit(seven.ebx, 31))) return Isa::kAvx2;  // F, BW, VL
  if (!(bit(seven_one.eax, 5) && bit(seven.ecx, 11))) return Isa::kAvx512;  // AVX512_BF16, AVX512_VNNI
  const bool tiles = (saved & 0x60000) == 0x60000;
  if (!(tiles && bit(seven.edx, 22) && bit(seven.edx, 24) && may_use_tiles())) return Isa::kAvx512Bf16;
  return Isa::kAmx;
}

#else

Isa best_of_machine() { return Isa::kPortable; }

#endif

// The kernels of a level, or nullptr where the compiler could not build them.
const Kernels* compiled(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return &kPortableKernels;
    case Isa::kAvx2:
#if defined(FIDDLER_HAVE_AVX2)
      return &kAvx2Kernels;
#else
      return nullptr;
#endif
    case Isa::kAvx512:
#if defined(FIDDLER_HAVE_AVX512)
      return &kAvx512Kernels;
#else
      return nullptr;
#endif
    case Isa::kAmx:
#if defined(FIDDLER_HAVE_AMX)
      return &kAmxKernels;
#else
      return nullptr;
#endif
    case Isa::kAvx512Bf16:
#if defined(FIDDLER_HAVE_AVX512_BF16)
      return &kAvx512Bf16Kernels;
#else
      return nullptr;
#endif
  }
  return nullptr;
}

}  // namespace

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> found;
    for (int level = 0; level <= static_cast<int>(best_of_machine()); ++level) {
      if (compiled(static_cast<Isa>(level))) found.push_back(static_cast<Isa>(level));
    }
    return found;
  }();
  return isas;
}

std::string isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

Isa isa_from_name(const std::string& name) {
  for (Isa isa : available_isas()) {
    if (isa_name(isa) == name) return isa;
  }
  throw std::invalid_argument("not an instruction set level of this machine: " + name);
}

const Kernels& kernels_for(Isa isa) { return *compiled(isa); }

}  // namespace fiddler
