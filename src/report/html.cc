#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/version.h"
#include "report/utf8.h"

namespace flyball::report {
namespace {

// Line colours: Okabe and Ito (2008), told apart by people with colour blindness; yellow and black replaced by shades
// that are seen on both backgrounds.
constexpr std::string_view kStyle = R"css(
:root { --page: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --box: #f6f8fa; --alarm: #b42318; --warn: #9a6700;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #56b4e9; --c5: #b38600; --c6: #6a51a3; --c7: #636363;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0f1318; --ink: #e6edf3; --soft: #9aa5b1; --line: #333c47; --box: #181e25; --alarm: #ff8a80; --warn: #e3b341;
    --c0: #58a6e0; --c1: #f2884b; --c2: #2fc79b; --c3: #e3a0c5; --c4: #8fd0f5; --c5: #e0b83c; --c6: #a994dd; --c7: #a0a0a0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 20px 48px; max-width: 900px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 32px 0 10px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
p { margin: 8px 0; max-width: 75ch; } .soft, footer { color: var(--soft); } footer { margin-top: 40px; font-size: 13px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 12px 0; padding: 0; }
.figures div { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; }
.figures dt { color: var(--soft); font-size: 13px; } .figures dd { margin: 0; } .figures .value { font-size: 22px; font-weight: 600; }
.figures .note { color: var(--soft); font-size: 12.5px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: 10px 0; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 4px 0; } th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--soft); font-size: 13px; } tbody th { font-weight: 400; } .n { text-align: right; } td.n { white-space: nowrap; }
ul.findings { list-style: none; padding: 0; } .findings li { border-left: 4px solid var(--line); padding: 4px 0 4px 12px; margin: 10px 0; }
.findings .alarm { border-color: var(--alarm); } .findings .warning { border-color: var(--warn); } .alarm b { color: var(--alarm); } .warning b { color: var(--warn); }
figure { margin: 12px 0; } figcaption { font-weight: 600; margin-bottom: 4px; }
svg.plot { width: 100%; height: auto; font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.plot text { fill: var(--soft); } .plot .e { text-anchor: end; } .plot .m { text-anchor: middle; }
.plot .grid path { stroke: var(--line); fill: none; } .plot .l { fill: none; stroke-width: 1.5; stroke-linejoin: round; stroke-linecap: round; }
.plot .dash { stroke-dasharray: 5 4; stroke-linecap: butt; } .plot .dots { stroke-width: 4; }
.plot .band { opacity: .3; stroke-linecap: butt; }
.plot .rule { stroke: var(--alarm); stroke-width: 1.5; stroke-dasharray: 8 4; } .plot .rule-t { fill: var(--alarm); }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); } .c7 { stroke: var(--c7); }
.plot .s { opacity: .22; } .s0 { fill: var(--c5); } .s1 { fill: var(--c6); } .s2 { fill: var(--c2); } .s3 { fill: var(--c3); }
.s4 { fill: var(--c4); } .s5 { fill: var(--c1); } .s6 { fill: var(--c0); } .s7 { fill: var(--c7); }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } figure, table, .figures div, li { break-inside: avoid; } h2 { break-after: avoid; } .scroll { overflow: visible; } }
)css";

}  // namespace

HtmlPage::HtmlPage(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

HtmlPage& HtmlPage::section(std::string_view heading) {
  body_ += fmt::format("<h2>{}</h2>\n", escape_html(heading));
  return *this;
}

HtmlPage& HtmlPage::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", escape_html(text));
  return *this;
}

HtmlPage& HtmlPage::figures(const std::vector<Figure>& figures) {
  body_ += "<dl class=\"figures\">\n";
  for (const Figure& figure : figures) {
    body_ += fmt::format("<div><dt>{}</dt><dd class=\"value\">{}</dd>", escape_html(figure.label),
                         escape_html(figure.value));
    if (!figure.note.empty()) body_ += fmt::format("<dd class=\"note\">{}</dd>", escape_html(figure.note));
    body_ += "</div>\n";
  }
  body_ += "</dl>\n";
  return *this;
}

HtmlPage& HtmlPage::table(const Table& table) {
  body_ += to_html(table);
  return *this;
}

HtmlPage& HtmlPage::plot(const Plot& plot) {
  body_ += fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", escape_html(plot.title),
                       to_svg(plot, fmt::format("plot{}", ++plots_)));
  return *this;
}

HtmlPage& HtmlPage::findings(std::vector<Finding> findings) {
  if (findings.empty()) return paragraph("None.");
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  body_ += "<ul class=\"findings\">\n";
  for (const Finding& finding : findings) {
    const std::string_view severity = to_string(finding.severity);
    body_ += fmt::format("<li class=\"{0}\"><b>{0}</b> {1}", severity, escape_html(finding.what));
    if (!finding.device.empty()) body_ += " <span class=\"soft\">· " + escape_html(finding.device.text()) + "</span>";
    if (!finding.remedy.empty()) body_ += "<br>" + escape_html(finding.remedy);
    std::string small(finding.code);
    if (finding.since != WallTime()) small += " since " + format_rfc3339(finding.since);
    body_ += fmt::format("<br><span class=\"soft\">{}</span></li>\n", escape_html(small));
  }
  body_ += "</ul>\n";
  return *this;
}

std::string HtmlPage::page() const {
  std::string subtitle;
  if (!subtitle_.empty()) subtitle = fmt::format("<p class=\"soft\">{}</p>\n", escape_html(subtitle_));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}{3}</main>\n"
      "<footer>Made by flyball {4}.</footer>\n</body>\n</html>\n",
      escape_html(title_), kStyle, subtitle, body_, version());
}

}  // namespace flyball::report
