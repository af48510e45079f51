// The extension module kernels._native. Memory comes as addresses: kernels/cpu.py has checked the tensors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_packing.h"
#include "expert_task.h"
#include "isa.h"
#include "linear_task.h"
#include "pool.h"
#include "read_task.h"
#include "token_pass.h"

namespace nb = nanobind;

namespace fiddler {
namespace {

template <class T>
T* at(std::size_t address) {
  return reinterpret_cast<T*>(address);
}

// Hidden size, intermediate size, and the number of the format.
using ShapeNumbers = std::array<std::size_t, 3>;

ExpertShape expert_shape(const ShapeNumbers& numbers) {
  return {numbers[0], numbers[1], static_cast<WeightFormat>(numbers[2])};
}

// A task that was submitted, and the pool that works on it.
struct Ticket {
  std::shared_ptr<Pool> pool;
  std::shared_ptr<Task> task;
  void wait() { pool->finish(*task); }
  void cancel() { task->cancel(); }
};

class NativePool {
 public:
  NativePool(int threads, const std::string& isa, std::vector<int> cpus)
      : kernels_(kernels_for(isa_from_name(isa))),
        tuning_(default_tuning(kernels_)),
        pool_(std::make_shared<Pool>(threads, std::move(cpus))) {}

  // Of job j: the block's address, those of its token indices and weights and how many they are, and its panels.
  Ticket submit_experts(const ShapeNumbers& shape, std::size_t x, std::size_t tokens, std::size_t out,
                        const std::vector<std::array<std::size_t, 6>>& jobs) {
    ExpertCall call{kernels_, tuning_, pool_->threads(), expert_shape(shape), at<const float>(x), at<float>(out), {}};
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const auto& [block, indices, weights, count, first_panel, end_panel] = jobs[j];
      call.jobs.push_back({at<const std::uint8_t>(block), at<const std::int32_t>(indices),
                           at<const float>(weights), count, first_panel, end_panel});
      for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t token = call.jobs.back().tokens[i];
        if (token < 0 || static_cast<std::size_t>(token) >= tokens) {
          throw std::out_of_range("token index " + std::to_string(token) + " of job " + std::to_string(j) +
                                  " is not one of the " + std::to_string(tokens) + " rows of x");
        }
      }
    }
    return submit(make_expert_task(std::move(call)));
  }

  // The chosen experts of one token: expert e of the layer is at blocks + e * stride.
  void run_chosen(const ShapeNumbers& numbers, std::size_t blocks, std::size_t stride, std::size_t experts,
                  std::size_t x, std::size_t ids, std::size_t weights, std::size_t top_k, std::size_t out) {
    static constexpr std::int32_t kFirstRow = 0;
    const ExpertShape shape = expert_shape(numbers);
    ExpertCall call{kernels_, tuning_, pool_->threads(), shape, at<const float>(x), at<float>(out), {}};
    for (std::size_t k = 0; k < top_k; ++k) {
      const std::int64_t id = at<const std::int64_t>(ids)[k];
      if (id < 0 || static_cast<std::size_t>(id) >= experts) {
        throw std::out_of_range("there is no expert " + std::to_string(id));
      }
      call.jobs.push_back({at<const std::uint8_t>(blocks + static_cast<std::size_t>(id) * stride), &kFirstRow,
                           at<const float>(weights) + k, 1, 0, shape.panels()});
    }
    submit(make_expert_task(std::move(call))).wait();
  }

  void linear(std::size_t rows, std::size_t cols, std::size_t weights, std::size_t x, std::size_t tokens,
              std::size_t out) {
    submit(make_linear_task(kernels_, tuning_, pool_->threads(), {rows, cols}, at<const std::uint8_t>(weights),
                            at<const float>(x), tokens, at<float>(out)))
        .wait();
  }

  std::uint64_t read(std::size_t data, std::size_t words, bool four_streams, std::size_t prefetch_words) {
    std::uint64_t checksum;
    submit(make_read_task(at<const std::uint64_t>(data), words, pool_->threads(), {four_streams, prefetch_words},
                          &checksum))
        .wait();
    return checksum;
  }

  TokenPass token_pass(std::size_t hidden, std::size_t heads, std::size_t kv_heads, std::size_t head_dim,
                       std::size_t experts, std::size_t top_k, float eps, std::size_t x, std::size_t normed,
                       std::size_t ids, std::size_t weights) {
    return {kernels_,
            pool_,
            {hidden, heads, kv_heads, head_dim, experts, top_k, eps},
            {at<float>(x), at<float>(normed), at<std::int64_t>(ids), at<float>(weights)}};
  }

  // For every format few_tokens, few_eight_bit, many_eight_bit and exact_tokens.
  void set_tuning(const std::array<std::array<std::size_t, 4>, kFormats>& formats, std::size_t panel_tokens) {
    for (std::size_t f = 0; f < kFormats; ++f) {
      tuning_.formats[f] = {formats[f][0], formats[f][1] != 0, formats[f][2] != 0, formats[f][3]};
    }
    tuning_.panel_tokens = panel_tokens;
  }
  std::pair<std::array<std::array<std::size_t, 4>, kFormats>, std::size_t> tuning() const {
    std::array<std::array<std::size_t, 4>, kFormats> formats;
    for (std::size_t f = 0; f < kFormats; ++f) {
      const FormatTuning& each = tuning_.formats[f];
      formats[f] = {each.few_tokens, each.few_eight_bit, each.many_eight_bit, each.exact_tokens};
    }
    return {formats, tuning_.panel_tokens};
  }

  std::pair<std::size_t, bool> ways(std::size_t format) const {
    const Ways ways = ways_of(kernels_, static_cast<WeightFormat>(format));
    return {ways.few_tokens, ways.eight_bit};
  }

  void close() { pool_->close(); }
  int threads() const { return pool_->threads(); }

 private:
  Ticket submit(std::shared_ptr<Task> task) {
    pool_->submit(task);
    return {pool_, std::move(task)};
  }

  const Kernels& kernels_;
  Tuning tuning_;
  std::shared_ptr<Pool> pool_;
};

TokenLayer token_layer(std::size_t input_norm, std::size_t qkv, std::size_t attention_out, std::size_t post_norm,
                       std::size_t router) {
  return {at<const float>(input_norm), at<const std::uint8_t>(qkv), at<const std::uint8_t>(attention_out),
          at<const float>(post_norm), at<const float>(router)};
}

void run_token(TokenPass& pass, const TokenLayer& layer, std::size_t keys, std::size_t values,
               std::size_t capacity, std::size_t position, std::size_t first, std::size_t cos, std::size_t sin) {
  pass.run(layer, {at<float>(keys), at<float>(values), capacity, position, first, at<const float>(cos),
                   at<const float>(sin)});
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (Isa isa : available_isas()) names.push_back(isa_name(isa));
  return names;
}

}  // namespace
}  // namespace fiddler

NB_MODULE(_native, m) {
  using namespace fiddler;
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  m.def("available_isas", &isa_names);
  bind_packing(m);
  nb::class_<Ticket>(m, "Ticket").def("wait", &Ticket::wait, nogil()).def("cancel", &Ticket::cancel);
  nb::class_<TokenLayer>(m, "TokenLayer");
  m.def("token_layer", &token_layer);
  nb::class_<TokenPass>(m, "TokenPass").def("run", &run_token, nogil());
  nb::class_<NativePool>(m, "Pool")
      .def(nb::init<int, const std::string&, std::vector<int>>())
      .def("submit_experts", &NativePool::submit_experts, nogil())
      .def("run_chosen", &NativePool::run_chosen, nogil())
      .def("linear", &NativePool::linear, nogil())
      .def("read", &NativePool::read, nogil())
      .def("token_pass", &NativePool::token_pass)
      .def("set_tuning", &NativePool::set_tuning)
      .def("close", &NativePool::close, nogil())
      .def("tuning", &NativePool::tuning)
      .def("ways", &NativePool::ways)
      .def_prop_ro("threads", &NativePool::threads);
}
