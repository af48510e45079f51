// Drives the pool and the kernels from several threads, without Python: for the sanitizers (`make sanitize`).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "aligned.h"
#include "attention_task.h"
#include "expert_task.h"
#include "isa.h"
#include "linear_task.h"
#include "pack_quantised.h"
#include "pack_rows.h"
#include "pool.h"
#include "read_task.h"
#include "stress_pool.h"

namespace {

using namespace fiddler;

std::vector<float> random_floats(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::uint16_t> random_weights(std::size_t count, std::mt19937& random) {
  std::vector<std::uint16_t> bits;
  for (float value : random_floats(count, random)) {
    std::uint32_t word;
    value *= 0.1f;
    std::memcpy(&word, &value, 4);
    bits.push_back(static_cast<std::uint16_t>(word >> 16));
  }
  return bits;
}

void run(Pool& pool, std::shared_ptr<Task> task) {
  pool.submit(task);
  pool.finish(*task);
}

struct Expert {
  ExpertShape shape;
  AlignedBytes block;

  Expert(ExpertShape s, std::mt19937& random) : shape(s), block(aligned_bytes(s.nbytes())) {
    const auto w1 = random_weights(s.hidden * s.intermediate, random);
    const auto w3 = random_weights(s.hidden * s.intermediate, random);
    const auto w2 = random_weights(s.hidden * s.intermediate, random);
    std::memset(bytes(), 0, s.nbytes());
    pack(ExpertMatrix::kGate, s.intermediate, w1.data());
    pack(ExpertMatrix::kUp, s.intermediate, w3.data());
    pack(ExpertMatrix::kDown, s.hidden, w2.data());
  }
  void pack(ExpertMatrix matrix, std::size_t rows, const std::uint16_t* weights) {
    const auto pack = shape.format == WeightFormat::kBf16 ? &pack_rows : &quantise_rows;
    pack(available_isas().back(), shape, matrix, 0, rows, weights, bytes());
  }
  std::uint8_t* bytes() const { return reinterpret_cast<std::uint8_t*>(block.get()); }
};

// One call of two experts twice: both results must be the same bits. Returns whether they were.
bool repeatable(Pool& pool, Isa isa, const Expert& expert, std::size_t tokens, bool eight_bit, std::mt19937& random) {
  const Kernels& kernels = kernels_for(isa);
  Tuning tuning = default_tuning(kernels);
  for (FormatTuning& each : tuning.formats) each.few_eight_bit = each.many_eight_bit = eight_bit;
  const std::size_t hidden = expert.shape.hidden;
  const std::vector<float> x = random_floats(tokens * hidden, random);
  const std::vector<float> weights(tokens, 0.5f);
  std::vector<std::int32_t> rows(tokens);
  for (std::size_t i = 0; i < tokens; ++i) rows[i] = static_cast<std::int32_t>(i * 7 % tokens);
  std::vector<float> results[2];
  for (auto& out : results) {
    out.assign(x.size(), 0.0f);
    const ExpertJob all{expert.bytes(), rows.data(), weights.data(), tokens, 0, expert.shape.panels()};
    const ExpertJob part{expert.bytes(), rows.data(), weights.data(), tokens, 1, expert.shape.panels()};
    run(pool, make_expert_task({kernels, tuning, pool.threads(), expert.shape, x.data(), out.data(), {all, part}}));
  }
  if (expert.shape.format != WeightFormat::kBf16) return results[0] == results[1];
  std::vector<float> y(tokens * 37);  // any packed bytes are weights: take the expert's
  run(pool, make_linear_task(kernels, tuning, pool.threads(), {37, hidden}, expert.bytes(), x.data(), tokens,
                             y.data()));
  return results[0] == results[1];
}

// Attention over several ranges of keys, twice. Returns whether both results were the same bits.
bool attention_repeatable(Pool& pool, Isa isa, std::mt19937& random) {
  constexpr std::size_t kHeads = 6, kKeyHeads = 2, kHeadDim = 20, kKeys = 300;
  const std::vector<float> queries = random_floats(kHeads * kHeadDim, random);
  const std::vector<float> keys = random_floats(kKeyHeads * kKeys * kHeadDim, random);
  const std::vector<float> values = random_floats(keys.size(), random);
  std::vector<float> results[2];
  for (auto& out : results) {
    out.assign(queries.size(), 0.0f);
    run(pool, make_attention_task({kernels_for(isa), kHeads, kKeyHeads, kHeadDim, queries.data(), keys.data(),
                                   values.data(), kKeys, 3, kKeys, out.data()}));
  }
  return results[0] == results[1];
}

// The plain reading of memory sees every word.
bool reads_all(Pool& pool, std::mt19937& random) {
  std::vector<std::uint64_t> words(random() % 100000);
  std::uint64_t expected = 0, seen = 0;
  for (std::uint64_t& word : words) expected ^= word = random();
  const ReadStyle style{random() % 2 == 0, random() % 2 * 512};
  run(pool, make_read_task(words.data(), words.size(), pool.threads(), style, &seen));
  return seen == expected;
}

int use(Pool& pool, unsigned seed) {
  std::mt19937 random(seed);
  int failures = expect(reads_all(pool, random), "reading sees every word");
  for (WeightFormat format : {WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kInt4}) {
    const Expert expert({40 + seed * 13, 70 + seed * 31, format}, random);
    for (Isa isa : available_isas()) {
      if (!attention_repeatable(pool, isa, random)) {
        std::printf("%s: two attentions differ\n", isa_name(isa).c_str());
        ++failures;
      }
      for (std::size_t tokens : {1u, 3u, 13u, 40u, 300u}) {
        for (bool eight_bit : {false, true}) {
          if (repeatable(pool, isa, expert, tokens, eight_bit, random)) continue;
          std::printf("%s, %zu tokens: two results differ\n", isa_name(isa).c_str(), tokens);
          ++failures;
        }
      }
    }
  }
  return failures;
}

}  // namespace

int main() {
  int failures[4] = {};
  // Pinned as usual, and to CPUs that do not exist, which must not matter.
  for (const std::vector<int>& cpus : {std::vector<int>{}, {0, 1, 0, 1}, {4000, 5000, -7}}) {
    for (int threads : {1, 2, 4}) {
      Pool pool(threads, cpus);
      std::vector<std::thread> users;
      for (unsigned u = 0; u < 4; ++u) {
        users.emplace_back([&, u] {
          failures[u] += use_pool(pool, u);
          if (cpus.empty()) failures[u] += use(pool, u);  // the kernels do not know where they run
        });
      }
      for (std::thread& user : users) user.join();
    }
  }
  const int total = failures[0] + failures[1] + failures[2] + failures[3];
  std::printf(total ? "%d failures\n" : "ok\n", total);
  return total ? 1 : 0;
}
