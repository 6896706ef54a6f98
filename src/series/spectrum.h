#pragma once
// Power spectral density of a power signal and the lines that stand out of it.

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "series/samples.h"

namespace flyball::series {

/// A fast Fourier transform in place; the size is a power of two. Forward, unscaled.
void fft(std::vector<std::complex<double>>& values);

struct Line {
  Hertz frequency;
  double amplitude_w = 0;  ///< of the sinusoid with the line's power, W
  double prominence = 0;   ///< density over the local floor (median of the neighbourhood)
};

struct Spectrum {
  std::vector<Hertz> frequency;
  std::vector<double> density;  ///< W²/Hz, one-sided
  Hertz resolution;             ///< distance of two bins
  Hertz nyquist;                ///< half the sampling rate: what is faster than this is folded below it, not seen
  std::size_t segments = 0;     ///< averaged; each estimate's relative sd is about 1/sqrt(segments)
  Seconds used;                 ///< measured time that went in
  std::vector<Line> lines;      ///< strongest first
  std::string note;             ///< what the sampling hides; empty segments, too short
  /// Variance between two frequencies, W².
  double band_power(Hertz from, Hertz to) const;
};

struct SpectrumOptions {
  Seconds segment;  ///< of one periodogram; 0 = an eighth of the recording, at least 64 samples
  double line_prominence =
      8;  ///< a chi-square with 2·segments degrees is above 8 times its median once in 10^4 bins or rarer
  std::size_t max_lines = 8;
  GapRule gap;
};

/// Welch's method (1967): Hann windows of equal length, half overlapping, means removed, on a uniform grid of the
/// median period. Segments do not cross holes.
Spectrum power_spectrum(const Samples& power, const SpectrumOptions& options = {});

/// The same over pieces of one series, averaged. The first piece sets the length of a segment.
class SpectrumMeter {
 public:
  explicit SpectrumMeter(const SpectrumOptions& options = {}) : options_(options) {}
  void add(const Samples& piece);
  Spectrum result() const;

 private:
  SpectrumOptions options_;
  Spectrum sum_;
  Seconds period_;
  std::size_t length_ = 0;
};

/// Values on a uniform grid by straight lines between neighbours; one run per stretch without a hole.
struct UniformRun {
  double start_s = 0;  ///< after the samples' origin
  std::vector<double> value;
};
std::vector<UniformRun> uniform_runs(const Samples& samples, Seconds step, const GapRule& gap = {});

}  // namespace flyball::series
