#pragma once
// A page in one file: nothing is loaded from anywhere, all text is escaped, light or dark as the reader's system is.

#include <string>
#include <string_view>
#include <vector>

#include "core/result_types.h"
#include "report/plot.h"
#include "report/table.h"

namespace flyball::report {

/// A number to see first: "Energy saved", "3.42 %", "3.10 to 3.74 at 95 %".
struct Figure {
  std::string label;
  std::string value;
  std::string note;
};

class HtmlPage {
 public:
  explicit HtmlPage(std::string title, std::string subtitle = {});

  HtmlPage& section(std::string_view heading);
  HtmlPage& paragraph(std::string_view text);
  HtmlPage& figures(const std::vector<Figure>& figures);
  HtmlPage& table(const Table& table);
  HtmlPage& plot(const Plot& plot);
  /// As a list, the most severe first; says so when there are none.
  HtmlPage& findings(std::vector<Finding> findings);

  /// The whole document.
  std::string page() const;

 private:
  std::string title_;
  std::string subtitle_;
  std::string body_;
  int plots_ = 0;
};

}  // namespace flyball::report
