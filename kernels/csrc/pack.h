// Between checkpoint matrices (bf16, row major) and packed tiles.
#pragma once

#include <cstdint>
#include <memory>

#include "layout.h"
#include "task.h"

namespace fiddler {

// Packs w1, w3 [intermediate, hidden] and w2 [hidden, intermediate] into shape.nbytes() bytes at out.
std::shared_ptr<Task> make_pack_expert_task(const ExpertShape& shape, const std::uint16_t* w1,
                                            const std::uint16_t* w3, const std::uint16_t* w2, std::uint8_t* out);

// Packs weight [rows, cols] into shape.nbytes() bytes at out.
std::shared_ptr<Task> make_pack_linear_task(const LinearShape& shape, const std::uint16_t* weight,
                                            std::uint8_t* out);

}  // namespace fiddler
