#include "train/config_text.h"

#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "layers/transformer_config.h"
#include "train/config_sections.h"
#include "train/toml.h"

namespace weft {
namespace {

std::vector<FieldDescription> DescribeModel() {
  FieldDescriber describer;
  TransformerConfig().Fields(describer);
  describer.fields.push_back({"norm", "table", "", "{ kind = \"layer\" or \"rms\", place = \"pre\" or \"post\", eps = 1e-5 }",
                              "normalisation in Add&Norm: which, where, and what is added to the variance"});
  for (const char* stack : {"encoder", "decoder"}) {
    describer.fields.push_back({stack, "table", "",
                                "{ sublayers = [{ type = \"self_attention\" }, ...] }, types as in `weft layers`",
                                absl::StrCat("the ", stack, "'s blocks spelled out, in place of the family's usual ones")});
  }
  return std::move(describer.fields);
}

// One section with comments; `values` are those that it has.
std::string FullSection(absl::string_view name, const std::vector<FieldDescription>& fields, const Options& values) {
  std::string text = absl::StrCat("[", name, "]\n");
  for (const FieldDescription& field : fields) {
    absl::StrAppend(&text, "# ", field.doc, "; ", field.allowed, "\n");
    if (const OptionValue* value = values.Find(field.name)) {
      absl::StrAppend(&text, field.name, " = ", PrintTomlValue(*value), "\n\n");
    } else {
      absl::StrAppend(&text, "# ", field.name, " is not set\n\n");
    }
  }
  return text;
}

// Takes keys out of a config one after the other, as long as it loads to the same one.
class Minimizer {
 public:
  Minimizer(const Config& config, ModelCheck check_model)
      : check_model_(check_model), root_(ConfigOptions(config).entries()), wanted_(Text()) {}

  absl::StatusOr<std::string> Minimize() {
    // Say why, where the config does not even load to itself.
    WEFT_RETURN_IF_ERROR(Load().status());
    Shrink("", &root_);
    return Text();
  }

 private:
  std::string Text() const { return PrintToml(Options(root_)); }
  absl::StatusOr<Config> Load() const { return ParseConfig({.text = Text(), .name = "minimal.toml"}, {}, check_model_); }
  bool IsSame() const {
    const absl::StatusOr<Config> config = Load();
    return config.ok() && PrintConfig(*config) == wanted_;
  }

  // Tries the entries of `table`, a part of root_, and those inside of the tables that must stay. `path` is "" or "section.".
  void Shrink(absl::string_view path, OptionValue::Table* table) {
    for (size_t i = 0; i < table->size();) {
      const std::string key = absl::StrCat(path, (*table)[i].key);
      if (key != "run" && key != "run.dir") {
        const Option removed = (*table)[i];
        table->erase(table->begin() + static_cast<int64_t>(i));
        if (IsSame()) continue;
        table->insert(table->begin() + static_cast<int64_t>(i), removed);
      }
      if (auto* inner = std::get_if<OptionValue::Table>(&(*table)[i].value.value)) Shrink(absl::StrCat(key, "."), inner);
      ++i;
    }
  }

  ModelCheck check_model_;
  OptionValue::Table root_;
  const std::string wanted_;
};

}  // namespace

std::string FullConfig(const Config& config) {
  const Options root = ConfigOptions(config);
  std::vector<std::pair<std::string, std::vector<FieldDescription>>> sections = DescribeConfig();
  sections.insert(sections.begin() + 2, {"model", DescribeModel()});  // behind [data], as PrintConfig has it
  std::string text;
  for (const auto& [name, fields] : sections) absl::StrAppend(&text, FullSection(name, fields, TableOf(root.Find(name), "")));
  return text;
}

absl::StatusOr<std::string> MinimalConfig(const Config& config, ModelCheck check_model) {
  return Minimizer(config, check_model).Minimize();
}

}  // namespace weft
