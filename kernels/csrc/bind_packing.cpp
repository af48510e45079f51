// Memory comes as addresses: kernels/pack.py, rows.py and layout.py have checked the tensors.
#include "bind_packing.h"

#include <nanobind/stl/string.h>

#include <string>

#include "pack.h"
#include "pack_quantised.h"
#if defined(FIDDLER_HAVE_PREAD)
#include "pack_file.h"
#endif

namespace nb = nanobind;

namespace fiddler {
namespace {

template <class T>
T* at(std::size_t address) {
  return reinterpret_cast<T*>(address);
}

QuantisedMatrix matrix(std::size_t rows, std::size_t cols) {
  return {rows,    cols,    ceil_div(cols, kTileCols), ceil_div(cols, kTileCols * kSideTiles),
          nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
}

QuantisedMatrix int8_matrix(std::size_t rows, std::size_t cols, std::size_t values, std::size_t scales) {
  QuantisedMatrix m = matrix(rows, cols);
  m.values = at<std::uint8_t>(values);
  m.scales = at<std::uint16_t>(scales);
  return m;
}

QuantisedMatrix int4_matrix(std::size_t rows, std::size_t cols, std::size_t values, std::size_t scales,
                            std::size_t minimums, std::size_t block_scales, std::size_t block_minimums) {
  QuantisedMatrix m = matrix(rows, cols);
  m.values = at<std::uint8_t>(values);
  m.group_scales = at<std::uint8_t>(scales);
  m.group_minimums = at<std::uint8_t>(minimums);
  m.block_scales = at<std::uint16_t>(block_scales);
  m.block_minimums = at<std::uint16_t>(block_minimums);
  return m;
}

WeightFormat format(std::size_t number) { return static_cast<WeightFormat>(number); }

WeightFault bind_quantise(const std::string& isa, std::size_t number, std::size_t weight, bool bf16,
                          const QuantisedMatrix& to) {
  return quantise(isa_from_name(isa), format(number), {at<const void>(weight), bf16, to.rows, to.cols}, to);
}

WeightFault bind_pack_rows(const std::string& isa, std::size_t hidden, std::size_t intermediate,
                           std::size_t number, int matrix, std::size_t first, std::size_t count,
                           std::size_t rows, std::size_t out) {
  const ExpertShape shape{hidden, intermediate, format(number)};
  const auto which = static_cast<ExpertMatrix>(matrix);
  const auto* weights = at<const std::uint16_t>(rows);
  const auto pack = shape.format == WeightFormat::kBf16 ? &pack_rows : &quantise_rows;
  return pack(isa_from_name(isa), shape, which, first, count, weights, at<std::uint8_t>(out));
}

#if defined(FIDDLER_HAVE_PREAD)
FileResult bind_pack_file_rows(const std::string& isa, std::size_t hidden, std::size_t intermediate,
                               std::size_t number, int matrix, std::size_t first, std::size_t count, int handle,
                               std::uint64_t position, std::size_t scratch, std::size_t scratch_rows,
                               std::size_t out) {
  return pack_file_rows(isa_from_name(isa), {hidden, intermediate, format(number)},
                        static_cast<ExpertMatrix>(matrix), {handle, position, first, count},
                        at<std::uint16_t>(scratch), scratch_rows, at<std::uint8_t>(out));
}
#endif

void bind_pack_quantised(std::size_t hidden, std::size_t intermediate, std::size_t number,
                         const QuantisedMatrix& w1, const QuantisedMatrix& w3, const QuantisedMatrix& w2,
                         std::size_t out) {
  pack_quantised({hidden, intermediate, format(number)}, w1, w3, w2, at<std::uint8_t>(out));
}

WeightFault bind_pack_linear(std::size_t rows, std::size_t cols, std::size_t weight, std::size_t out) {
  return pack_linear({rows, cols}, at<const std::uint16_t>(weight), at<std::uint8_t>(out));
}

}  // namespace

void bind_packing(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<WeightFault>(m, "WeightFault")
      .def_prop_ro("found", [](const WeightFault& f) { return static_cast<bool>(f); })
      .def_prop_ro("too_large", [](const WeightFault& f) { return f.fault == Fault::kTooLarge; })
      .def_ro("matrix", &WeightFault::matrix)
      .def_ro("row", &WeightFault::row)
      .def_ro("col", &WeightFault::col);
  nb::class_<QuantisedMatrix>(m, "QuantisedMatrix");
  m.def("int8_matrix", &int8_matrix);
  m.def("int4_matrix", &int4_matrix);
  m.def("quantise", &bind_quantise, nogil());
  m.def("pack_rows", &bind_pack_rows, nogil());
#if defined(FIDDLER_HAVE_PREAD)
  nb::class_<FileResult>(m, "FileResult")
      .def_ro("fault", &FileResult::fault)
      .def_ro("error", &FileResult::error)
      .def_ro("bytes", &FileResult::bytes);
  m.def("pack_file_rows", &bind_pack_file_rows, nogil());
#endif
  m.def("pack_quantised", &bind_pack_quantised, nogil());
  m.def("pack_linear", &bind_pack_linear, nogil());
}

}  // namespace fiddler
