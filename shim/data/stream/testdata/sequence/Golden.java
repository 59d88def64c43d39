import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** Writes the files of this folder. See README. */
public class Golden {
	public static void main(String[] args) throws Exception {
		Configuration conf = new Configuration();
		conf.setInt("io.seqfile.compress.blocksize", 700); // several blocks
		write(conf, args[0] + "/plain.seq", CompressionType.NONE, null, 60);
		write(conf, args[0] + "/empty.seq", CompressionType.NONE, null, 0);
		write(conf, args[0] + "/record.seq", CompressionType.RECORD, DefaultCodec.class, 40);
		write(conf, args[0] + "/record-gzip.seq", CompressionType.RECORD, GzipCodec.class, 20);
		write(conf, args[0] + "/block.seq", CompressionType.BLOCK, DefaultCodec.class, 60);
		write(conf, args[0] + "/block-bzip2.seq", CompressionType.BLOCK, BZip2Codec.class, 60);
	}

	static void write(Configuration conf, String path, CompressionType type, Class<? extends CompressionCodec> codec, int records)
			throws Exception {
		SequenceFile.Writer.Option compression = codec == null ? SequenceFile.Writer.compression(type)
				: SequenceFile.Writer.compression(type, ReflectionUtils.newInstance(codec, conf));
		try (SequenceFile.Writer w = SequenceFile.createWriter(conf, SequenceFile.Writer.file(new Path(path)),
				SequenceFile.Writer.keyClass(LongWritable.class), SequenceFile.Writer.valueClass(Text.class), compression)) {
			for (int i = 0; i < records; i++) {
				if (codec == null && i % 7 == 6) {
					w.sync(); // marks, without so much between them
				}
				w.append(new LongWritable(i), new Text(i % 10 == 3 ? "" : "value " + i + " é中 " + "x".repeat(i % 5 * 50)));
			}
		}
	}
}
